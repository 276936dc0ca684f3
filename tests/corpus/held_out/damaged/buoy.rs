pub struct Buoy {
    pub depth: f32,
}

impl Buoy {
    pub fn is_deep(&self) -> bool {
        self.depth > 10.0
    }

pub fn all(buoys: &[Buoy]) -> usize {
    buoys.len()
}
