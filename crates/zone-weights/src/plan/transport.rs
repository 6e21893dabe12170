//! The transport problem, solved exactly.

use alloc::vec::Vec;

/// Ships all of `supply` to places that take up to `limit`, at the least cost.
/// `None` if the limits are too small together.
///
/// Successive shortest paths with potentials (Ahuja, Magnanti and Orlin, *Network
/// Flows*, 9.7), on the dense graph: every path is found by Dijkstra's algorithm
/// in time in proportion to the square of the places. Whole numbers throughout,
/// so the result is the optimum and not close to it.
pub(super) fn transport(
    supply: &[u128],
    limit: &[u128],
    cost: impl Fn(usize, usize) -> u32,
) -> Option<Vec<Vec<u128>>> {
    let mut left = supply.to_vec();
    let mut room = limit.to_vec();
    let mut flow = alloc::vec![alloc::vec![0_u128; limit.len()]; supply.len()];
    // Length of the shortest path so far; sources, then sinks.
    let mut potential = alloc::vec![0_i64; supply.len() + limit.len()];
    while left.iter().any(|left| *left > 0) {
        let paths = shortest(&left, &flow, &potential, &cost);
        // The sink with room at the end of the shortest path.
        let sinks = supply.len()..supply.len() + limit.len();
        let sink = sinks
            .filter(|sink| room[sink - supply.len()] > 0)
            .filter_map(|sink| Some((paths[sink].length? + potential[sink], sink)))
            .min()?
            .1;
        for (potential, path) in potential.iter_mut().zip(&paths) {
            *potential += path.length.unwrap_or(0);
        }

        // How much fits along it.
        let steps = steps(&paths, sink, supply.len());
        let source = steps[steps.len() - 1].0;
        let mut amount = left[source].min(room[sink - supply.len()]);
        for (from, to, forward) in &steps {
            if !forward {
                amount = amount.min(flow[*from][*to]);
            }
        }
        for (from, to, forward) in &steps {
            if *forward {
                flow[*from][*to] += amount;
            } else {
                flow[*from][*to] -= amount;
            }
        }
        left[source] -= amount;
        room[sink - supply.len()] -= amount;
    }
    Some(flow)
}

#[derive(Debug, Clone, Copy, Default)]
struct Path {
    /// With reduced costs; `None` where it does not lead.
    length: Option<i64>,
    from: Option<usize>,
    done: bool,
}

/// Shortest paths from all sources that have something left.
fn shortest(
    left: &[u128],
    flow: &[Vec<u128>],
    potential: &[i64],
    cost: &impl Fn(usize, usize) -> u32,
) -> Vec<Path> {
    let sources = left.len();
    let mut paths = alloc::vec![Path::default(); potential.len()];
    for (source, left) in left.iter().enumerate() {
        if *left > 0 {
            // Its potential has been 0 since the beginning.
            paths[source].length = Some(0);
        }
    }
    loop {
        let next = (0..paths.len())
            .filter(|node| !paths[*node].done)
            .filter_map(|node| Some((paths[node].length?, node)))
            .min();
        let Some((length, node)) = next else {
            return paths;
        };
        paths[node].done = true;
        let mut reach = |to: usize, step: i64| {
            let through = length + step + potential[node] - potential[to];
            if !paths[to].done && paths[to].length.is_none_or(|known| through < known) {
                paths[to].length = Some(through);
                paths[to].from = Some(node);
            }
        };
        if node < sources {
            for to in sources..potential.len() {
                reach(to, i64::from(cost(node, to - sources)));
            }
        } else {
            let sink = node - sources;
            for (source, row) in flow.iter().enumerate() {
                if row[sink] > 0 {
                    reach(source, -i64::from(cost(source, sink)));
                }
            }
        }
    }
}

/// The steps of the path to a sink, backwards: source, sink, and whether it goes
/// from the source to the sink or takes back what went there.
fn steps(paths: &[Path], sink: usize, sources: usize) -> Vec<(usize, usize, bool)> {
    let mut steps = Vec::new();
    let mut node = sink;
    while let Some(from) = paths[node].from {
        steps.push(if from < sources {
            (from, node - sources, true)
        } else {
            (node, from - sources, false)
        });
        node = from;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn total(flow: &[Vec<u128>], cost: &[[u32; 3]; 3]) -> u128 {
        let rows = flow.iter().zip(cost);
        rows.map(|(row, cost)| {
            let cells = row.iter().zip(cost);
            cells
                .map(|(amount, cost)| amount * u128::from(*cost))
                .sum::<u128>()
        })
        .sum()
    }

    /// The least cost, by trying everything; the optimum of whole numbers is an
    /// optimum at all.
    fn tried(supply: &[u128], room: &[u128; 3], cost: &[[u32; 3]]) -> Option<u128> {
        let Some((first, others)) = supply.split_first() else {
            return Some(0);
        };
        let mut best = None;
        for a in 0..=*first {
            for b in 0..=first - a {
                let row = [a, b, first - a - b];
                if (0..3).any(|sink| row[sink] > room[sink]) {
                    continue;
                }
                let left = [0, 1, 2].map(|sink| room[sink] - row[sink]);
                let here: u128 = (0..3)
                    .map(|sink| row[sink] * u128::from(cost[0][sink]))
                    .sum();
                if let Some(rest) = tried(others, &left, &cost[1..]) {
                    best = Some(best.map_or(here + rest, |best: u128| best.min(here + rest)));
                }
            }
        }
        best
    }

    proptest! {
        #[test]
        fn no_other_way_is_cheaper(
            supply in prop::array::uniform3(0..5_u128),
            limit in prop::array::uniform3(0..6_u128),
            cost in prop::array::uniform3(prop::array::uniform3(0..6_u32)),
        ) {
            let ours = transport(&supply, &limit, |from, to| cost[from][to]);
            if let Some(flow) = &ours {
                for (row, supply) in flow.iter().zip(&supply) {
                    prop_assert_eq!(row.iter().sum::<u128>(), *supply);
                }
                for sink in 0..3 {
                    prop_assert!(flow.iter().map(|row| row[sink]).sum::<u128>() <= limit[sink]);
                }
            }
            let best = tried(&supply, &limit, &cost);
            prop_assert_eq!(ours.map(|flow| total(&flow, &cost)), best);
        }
    }

    /// A plan is the cheapest exactly if there is no circle along which moving
    /// something would save: Bellman and Ford's algorithm would find one.
    fn could_save(flow: &[Vec<u128>], limit: &[u128], cost: impl Fn(usize, usize) -> u32) -> bool {
        let (sources, sinks) = (flow.len(), limit.len());
        let outside = sources + sinks;
        let mut edges = Vec::new();
        for sink in 0..sinks {
            let load: u128 = flow.iter().map(|row| row[sink]).sum();
            for (source, row) in flow.iter().enumerate() {
                let cost = i64::from(cost(source, sink));
                edges.push((source, sources + sink, cost));
                if row[sink] > 0 {
                    edges.push((sources + sink, source, -cost));
                }
            }
            if load < limit[sink] {
                edges.push((sources + sink, outside, 0));
            }
            if load > 0 {
                edges.push((outside, sources + sink, 0));
            }
        }
        let mut lengths = alloc::vec![0; outside + 1];
        let mut shorter = true;
        for _ in 0..=outside + 1 {
            shorter = false;
            for (from, to, cost) in &edges {
                if lengths[*from] + cost < lengths[*to] {
                    lengths[*to] = lengths[*from] + cost;
                    shorter = true;
                }
            }
        }
        shorter
    }

    proptest! {
        #[test]
        fn nothing_could_be_saved_among_more_places(
            supply in prop::collection::vec(0..50_u128, 7),
            limit in prop::collection::vec(0..60_u128, 7),
            cost in prop::collection::vec(0..30_u32, 49),
        ) {
            let cost = |from: usize, to: usize| cost[from * 7 + to];
            let enough = supply.iter().sum::<u128>() <= limit.iter().sum();
            let flow = transport(&supply, &limit, cost);
            prop_assert_eq!(flow.is_some(), enough);
            if let Some(flow) = flow {
                prop_assert!(!could_save(&flow, &limit, cost));
            }
        }
    }

    #[test]
    fn fifty_places_are_solved_without_going_through_small_steps() {
        let many = 50_usize;
        let huge = 1_u128 << 84;
        let supply: Vec<u128> = (0..many)
            .map(|zone| huge + (zone as u128 * 7919) % 1_000)
            .collect();
        let limit: Vec<u128> = (0..many)
            .map(|zone| huge + (zone as u128 * 104_729) % 2_000)
            .collect();
        let flow = transport(&supply, &limit, |from, to| (from.abs_diff(to) % 17) as u32);
        assert!(flow.is_some());
    }
}
