use super::*;
use crate::assignment::{Assignments, Endpoint, Health, Locality};

const LIMITS: Limits = Limits {
    names: 4,
    response: 1 << 20,
};

/// A server with one stream.
#[derive(Default)]
struct Scene {
    assignments: Assignments,
    snapshot: Snapshot,
    subscription: Subscription,
}

impl Scene {
    fn publish(&mut self, cluster: &str, port: u16) {
        let mut assignment = Assignment::default();
        let endpoint = Endpoint {
            address: "127.0.0.1".to_owned(),
            port,
            health: Health::Healthy,
            weight: None,
        };
        assignment.insert(0, &Locality::default(), endpoint);
        self.assignments.insert(cluster, assignment);
        self.advance();
    }

    fn take_back(&mut self, cluster: &str) {
        self.assignments.everyone.remove(cluster);
        self.advance();
    }

    fn advance(&mut self) {
        let version = self.snapshot.version + 1;
        self.snapshot = self.snapshot.next(version, &self.assignments).unwrap().0;
    }

    fn ask(&mut self, names: &[&str], nonce: &str, refused: bool) -> Heard {
        let asked = Asked {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            nonce: nonce.to_owned(),
            refused,
        };
        self.subscription.handle(asked, LIMITS).unwrap()
    }

    /// What is sent: nonce and resources.
    fn sent(&mut self) -> Option<(String, Vec<Bytes>)> {
        let response = self
            .subscription
            .next(&self.snapshot, &Audience::default(), LIMITS)?;
        Some((response.nonce.to_string(), response.resources))
    }

    fn bytes(&self, cluster: &str) -> Bytes {
        let found = self.snapshot.get(&Audience::default(), cluster);
        found.unwrap().bytes.clone()
    }
}

#[test]
fn only_what_was_asked_for_and_has_changed_is_sent() {
    let mut scene = Scene::default();
    scene.publish("a", 1);
    scene.publish("b", 2);
    scene.publish("c", 3);
    assert_eq!(scene.ask(&["a", "b"], "", false), Heard::Wish);
    let (nonce, resources) = scene.sent().unwrap();
    assert_eq!(resources, [scene.bytes("a"), scene.bytes("b")]);
    assert_eq!(
        scene.ask(&["a", "b"], &nonce, false),
        Heard::Ack { version: 3 }
    );
    assert!(scene.sent().is_none(), "nothing is new");
    scene.publish("c", 30);
    assert!(scene.sent().is_none(), "nobody asked for it");
    scene.publish("b", 20);
    assert_eq!(scene.sent().unwrap().1, [scene.bytes("b")]);
}

#[test]
fn nothing_is_sent_before_the_first_publication() {
    let mut scene = Scene::default();
    scene.ask(&["a"], "", false);
    assert!(scene.sent().is_none());
    scene.publish("other", 1);
    assert!(
        scene.sent().is_none(),
        "an unknown cluster is not an empty one"
    );
    scene.publish("a", 1);
    assert_eq!(scene.sent().unwrap().1, [scene.bytes("a")]);
}

#[test]
fn what_is_published_before_an_answer_is_sent_once_and_in_its_newest_form() {
    let mut scene = Scene::default();
    scene.publish("a", 1);
    scene.ask(&["a"], "", false);
    let (nonce, _) = scene.sent().unwrap();
    for port in 2..100 {
        scene.publish("a", port);
        assert!(scene.sent().is_none(), "one at a time");
    }
    scene.ask(&["a"], &nonce, false);
    let (nonce, resources) = scene.sent().unwrap();
    assert_eq!(resources, [scene.bytes("a")]);
    scene.ask(&["a"], &nonce, false);
    assert!(scene.sent().is_none());
}

#[test]
fn a_refused_assignment_is_not_sent_again_until_it_changes() {
    let mut scene = Scene::default();
    scene.publish("a", 1);
    scene.ask(&["a"], "", false);
    let (nonce, _) = scene.sent().unwrap();
    assert_eq!(
        scene.ask(&["a"], &nonce, true),
        Heard::Nack {
            version: 1,
            clusters: BTreeSet::from(["a".into()])
        }
    );
    assert!(scene.sent().is_none());
    scene.publish("a", 2);
    assert_eq!(scene.sent().unwrap().1, [scene.bytes("a")]);
}

#[test]
fn one_that_is_refused_does_not_keep_the_proxy_from_the_others() {
    let mut scene = Scene::default();
    for cluster in ["a", "bad", "c"] {
        scene.publish(cluster, 1);
    }
    let names = ["a", "bad", "c"];
    scene.ask(&names, "", false);
    let (nonce, resources) = scene.sent().unwrap();
    assert_eq!(resources.len(), 3);
    scene.ask(&names, &nonce, true);
    let mut got = Vec::new();
    for cluster in names {
        let (nonce, resources) = scene.sent().unwrap();
        assert_eq!(resources, [scene.bytes(cluster)]);
        scene.ask(&names, &nonce, cluster == "bad");
        got.push(cluster);
    }
    assert!(scene.sent().is_none());
    // That it accepted the last one says nothing of the other.
    let bad = || BTreeSet::from(["bad".into()]);
    assert_eq!(*scene.subscription.refuses(), bad());
    scene.publish("c", 2);
    let (nonce, _) = scene.sent().unwrap();
    scene.ask(&names, &nonce, false);
    assert_eq!(*scene.subscription.refuses(), bad());
    scene.publish("bad", 2);
    let (nonce, _) = scene.sent().unwrap();
    scene.ask(&names, &nonce, false);
    assert!(scene.subscription.refuses().is_empty());
}

#[test]
fn an_answer_to_an_older_response_is_left_alone() {
    let mut scene = Scene::default();
    scene.publish("a", 1);
    scene.ask(&["a"], "", false);
    let (first, _) = scene.sent().unwrap();
    scene.ask(&["a"], &first, false);
    scene.publish("a", 2);
    let (second, _) = scene.sent().unwrap();
    assert_eq!(scene.ask(&["b"], &first, false), Heard::Stale);
    assert_eq!(scene.ask(&["a"], &second, false), Heard::Ack { version: 2 });
}

#[test]
fn a_name_added_later_is_sent_though_nothing_was_published() {
    let mut scene = Scene::default();
    scene.publish("a", 1);
    scene.publish("b", 2);
    scene.ask(&["a"], "", false);
    let (nonce, _) = scene.sent().unwrap();
    scene.ask(&["a"], &nonce, false);
    assert_eq!(scene.ask(&["a", "b"], &nonce, false), Heard::Wish);
    assert_eq!(scene.sent().unwrap().1, [scene.bytes("b")]);
}

#[test]
fn a_name_that_was_dropped_and_asked_for_again_is_sent_again() {
    let mut scene = Scene::default();
    scene.publish("a", 1);
    scene.ask(&["a"], "", false);
    let (nonce, _) = scene.sent().unwrap();
    scene.ask(&[], &nonce, false);
    scene.publish("a", 2);
    assert!(
        scene.sent().is_none(),
        "no name is none, after there were some"
    );
    scene.ask(&["a"], &nonce, false);
    assert_eq!(scene.sent().unwrap().1, [scene.bytes("a")]);
}

#[test]
fn no_name_at_first_and_a_star_ask_for_everything() {
    for names in [&[][..], &["*"][..]] {
        let mut scene = Scene::default();
        scene.publish("a", 1);
        scene.publish("b", 2);
        scene.ask(names, "", false);
        let (nonce, resources) = scene.sent().unwrap();
        assert_eq!(resources, [scene.bytes("a"), scene.bytes("b")]);
        scene.ask(names, &nonce, false);
        scene.publish("c", 3);
        assert_eq!(scene.sent().unwrap().1, [scene.bytes("c")]);
    }
}

#[test]
fn a_cluster_that_is_taken_back_becomes_an_empty_one_once() {
    let mut scene = Scene::default();
    scene.publish("a", 1);
    scene.ask(&["a"], "", false);
    let (nonce, _) = scene.sent().unwrap();
    scene.ask(&["a"], &nonce, false);
    scene.take_back("a");
    let empty = message::resource("a", &Assignment::default());
    let (nonce, resources) = scene.sent().unwrap();
    assert_eq!(resources, [empty]);
    scene.ask(&["a"], &nonce, false);
    assert!(scene.sent().is_none());
    scene.publish("a", 1);
    assert_eq!(scene.sent().unwrap().1, [scene.bytes("a")]);
}

#[test]
fn a_large_answer_goes_in_several_responses() {
    let mut scene = Scene::default();
    for cluster in ["a", "b", "c"] {
        scene.publish(cluster, 1);
    }
    scene.ask(&[], "", false);
    let limits = Limits {
        names: 4,
        response: scene.bytes("a").len() * 2,
    };
    let anyone = Audience::default();
    let mut sizes = Vec::new();
    while let Some(response) = scene.subscription.next(&scene.snapshot, &anyone, limits) {
        sizes.push(response.resources.len());
        scene.ask(&[], &response.nonce.to_string(), false);
    }
    assert_eq!(sizes, [2, 1]);
}

#[test]
fn more_names_than_allowed_are_refused() {
    let mut subscription = Subscription::default();
    let asked = Asked {
        names: (0..5).map(|number| number.to_string()).collect(),
        ..Asked::default()
    };
    assert_eq!(subscription.handle(asked, LIMITS), Err(TooManyNames(5)));
}

mod model {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Publish(u8, u16),
        TakeBack(u8),
        Answer { refused: bool },
        Ask(Vec<u8>),
        Send,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..4_u8, 1..50_u16).prop_map(|(cluster, port)| Step::Publish(cluster, port)),
            (0..4_u8).prop_map(Step::TakeBack),
            any::<bool>().prop_map(|refused| Step::Answer { refused }),
            proptest::collection::vec(0..4_u8, 1..4).prop_map(Step::Ask),
            Just(Step::Send),
        ]
    }

    proptest! {
        /// Whatever happens on the way: once it answers with yes until nothing
        /// more comes, the proxy has what is published of what it asked for.
        #[test]
        fn a_proxy_ends_with_what_is_published(steps in proptest::collection::vec(step(), 1..60)) {
            let mut scene = Scene::default();
            let name = |cluster: u8| format!("cluster-{cluster}");
            let mut wish: Vec<String> = Vec::new();
            // As a proxy keeps it: only what it has accepted, of what it wants.
            let mut has: BTreeMap<String, Bytes> = BTreeMap::new();
            let mut offered: Option<(String, Vec<Bytes>)> = None;
            let mut latest = String::new();
            let named = |bytes: &Bytes| {
                let found = (0..4).map(name).find(|name| {
                    bytes.windows(name.len()).any(|part| part == name.as_bytes())
                });
                found.unwrap()
            };
            let ask = |scene: &mut Scene, wish: &[String], nonce: &str, refused| {
                let asked = Asked { names: wish.to_vec(), nonce: nonce.to_owned(), refused };
                scene.subscription.handle(asked, LIMITS).unwrap()
            };
            let accept = |has: &mut BTreeMap<String, Bytes>, wish: &[String], resources: Vec<Bytes>| {
                for resource in resources {
                    let name = named(&resource);
                    if wish.contains(&name) {
                        has.insert(name, resource);
                    }
                }
            };
            for step in steps {
                match step {
                    Step::Publish(cluster, port) => scene.publish(&name(cluster), port),
                    Step::TakeBack(cluster) => scene.take_back(&name(cluster)),
                    Step::Ask(clusters) => {
                        wish = clusters.into_iter().map(name).collect();
                        has.retain(|name, _| wish.contains(name));
                        // Sent before it has seen what is offered, if anything is.
                        if offered.is_none() {
                            ask(&mut scene, &wish, &latest, false);
                        }
                    }
                    Step::Send => {
                        if let Some(sent) = scene.sent() {
                            prop_assert!(offered.is_none(), "two under way");
                            offered = Some(sent);
                        }
                    }
                    Step::Answer { refused } => {
                        if let Some((nonce, resources)) = offered.take() {
                            ask(&mut scene, &wish, &nonce, refused);
                            latest = nonce;
                            if !refused {
                                accept(&mut has, &wish, resources);
                            }
                        }
                    }
                }
            }
            // What was refused stays refused until it changes: change all.
            for cluster in 0..4 {
                scene.publish(&name(cluster), 100);
            }
            if let Some((nonce, resources)) = offered.take() {
                ask(&mut scene, &wish, &nonce, false);
                latest = nonce;
                accept(&mut has, &wish, resources);
            }
            ask(&mut scene, &wish, &latest, false);
            let mut rounds = 0;
            while let Some((nonce, resources)) = scene.sent() {
                ask(&mut scene, &wish, &nonce, false);
                accept(&mut has, &wish, resources);
                rounds += 1;
                prop_assert!(rounds < 20, "it does not end");
            }
            for name in &wish {
                prop_assert_eq!(has.get(name), Some(&scene.bytes(name)), "{}", name);
            }
        }
    }
}
