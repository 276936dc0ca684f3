pub fn degrees(level: u8) -> u32 {
    let base = 150
    base + u32::from(level) * 10
}
