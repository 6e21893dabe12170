/// Values under small numbers, which are used again.
pub(crate) struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

struct Entry<T> {
    /// Goes up with each ticket handed out, over all values that the entry ever
    /// holds, so that a ticket is never valid for another value.
    generation: u32,
    value: Option<T>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Makes room for so many values in all, and no more.
    pub(crate) fn reserve(&mut self, values: usize) {
        let more = values.saturating_sub(self.entries.len());
        self.entries.reserve_exact(more);
    }

    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(key) = self.free.pop() {
            self.entries[key as usize].value = Some(value);
            return key;
        }
        self.entries.push(Entry {
            generation: 0,
            value: Some(value),
        });
        (self.entries.len() - 1) as u32
    }

    pub(crate) fn remove(&mut self, key: u32) -> Option<T> {
        let value = self.entries.get_mut(key as usize)?.value.take()?;
        self.free.push(key);
        Some(value)
    }

    pub(crate) fn get(&self, key: u32) -> Option<&T> {
        self.entries.get(key as usize)?.value.as_ref()
    }

    pub(crate) fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        self.entries.get_mut(key as usize)?.value.as_mut()
    }

    /// A generation that the entry never had before.
    pub(crate) fn next_generation(&mut self, key: u32) -> u32 {
        match self.entries.get_mut(key as usize) {
            Some(entry) => {
                entry.generation = entry.generation.wrapping_add(1);
                entry.generation
            }
            None => 0,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().filter_map(|entry| entry.value.as_ref())
    }

    /// The keys in use now.
    pub(crate) fn keys(&self) -> Vec<u32> {
        let taken = |(key, entry): (usize, &Entry<T>)| entry.value.is_some().then_some(key as u32);
        self.entries.iter().enumerate().filter_map(taken).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_used_again_and_generations_are_not() {
        let mut slab = Slab::default();
        let a = slab.insert("a");
        let first = slab.next_generation(a);
        assert_eq!(slab.remove(a), Some("a"));
        assert_eq!(slab.remove(a), None);
        let b = slab.insert("b");
        assert_eq!(a, b);
        assert_ne!(slab.next_generation(b), first);
        assert_eq!(slab.get(7), None);
        assert_eq!(slab.next_generation(7), 0);
        assert_eq!(slab.keys(), [b]);
    }
}
