//! Peak throughput of arithmetic instructions, measured with register operands only.

use std::hint::black_box;
use std::time::Duration;

use super::best_pass;
use crate::dispatch::Level;
#[cfg(target_arch = "x86_64")]
use crate::error::KernelError;
use crate::pool::Pool;
use crate::simd::LANES;
use crate::topology::Topology;

/// An arithmetic instruction (or the shortest equivalent sequence) whose peak can be measured.
///
/// To add one, extend `ALL`, `name`, `data_type`, `available` and `run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instruction {
    /// `tdpbsud`: tiles of bytes, summed in 32 bits.
    AmxInt8,
    /// `vpdpbusd` on 512 bits.
    Avx512Vnni,
    /// `vpdpbusd` on 256 bits, as level `avxvnni` executes it.
    AvxVnni,
    /// `vpmaddubsw`, `vpmaddwd` and `vpaddd`: bytes summed in 32 bits without VNNI.
    Avx2Int8,
    /// 32-bit integer multiply-add in plain Rust.
    PortableInt,
    /// `tdpbf16ps`: tiles of bf16, summed in f32.
    AmxBf16,
    /// `vdpbf16ps` on 512 bits.
    Avx512Bf16,
    /// `vfmadd` on 512 bits.
    Avx512F32,
    /// `vfmadd` on 256 bits.
    Avx2F32,
    /// f32 multiply and add in plain Rust.
    PortableF32,
}

impl Instruction {
    /// All instructions, ordered by data type, widest first.
    pub const ALL: [Self; 10] = [
        Self::AmxInt8,
        Self::Avx512Vnni,
        Self::AvxVnni,
        Self::Avx2Int8,
        Self::PortableInt,
        Self::AmxBf16,
        Self::Avx512Bf16,
        Self::Avx512F32,
        Self::Avx2F32,
        Self::PortableF32,
    ];

    /// The name used on the command line and in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::AmxInt8 => "amx_int8",
            Self::Avx512Vnni => "avx512_vnni",
            Self::AvxVnni => "avx_vnni",
            Self::Avx2Int8 => "avx2_maddubs",
            Self::PortableInt => "portable_int",
            Self::AmxBf16 => "amx_bf16",
            Self::Avx512Bf16 => "avx512_bf16",
            Self::Avx512F32 => "avx512_fma",
            Self::Avx2F32 => "avx2_fma",
            Self::PortableF32 => "portable_f32",
        }
    }

    /// Its operand type: `int8`, `bf16` or `f32`.
    pub fn data_type(self) -> &'static str {
        match self {
            Self::AmxInt8 | Self::Avx512Vnni | Self::AvxVnni | Self::Avx2Int8 => "int8",
            Self::PortableInt => "int32",
            Self::AmxBf16 | Self::Avx512Bf16 => "bf16",
            Self::Avx512F32 | Self::Avx2F32 | Self::PortableF32 => "f32",
        }
    }

    /// Whether it can be measured in this process.
    pub fn available(self) -> bool {
        match self {
            Self::PortableInt | Self::PortableF32 => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => {
                is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni")
            }
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => Level::AvxVnni.available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Int8 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Bf16 => {
                is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bf16")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512F32 => is_x86_feature_detected!("avx512f"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2F32 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Self::AmxInt8 => crate::amx::support::support().is_ok(),
            #[cfg(target_arch = "x86_64")]
            Self::AmxBf16 => crate::amx::peak::has_bf16(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// Run `rounds` iterations of the instruction's loop. Returns the number of operations; a multiply-add counts as two.
    ///
    /// # Panics
    /// If it is not available.
    fn run(self, rounds: usize) -> usize {
        assert!(self.available(), "{} is not available", self.name());
        match self {
            Self::PortableInt => portable_int(rounds),
            Self::PortableF32 => portable_f32(rounds),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: available, so the instructions are there; this holds for every arm below.
            Self::Avx512Vnni => unsafe { x86::avx512_vnni(rounds) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Self::AvxVnni => unsafe { x86::avx_vnni(rounds) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Self::Avx2Int8 => unsafe { x86::avx2_maddubs(rounds) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Self::Avx512Bf16 => unsafe { x86::avx512_bf16(rounds) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Self::Avx512F32 => unsafe { x86::avx512_fma(rounds) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Self::Avx2F32 => unsafe { x86::avx2_fma(rounds) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above: this process may use the tiles.
            Self::AmxInt8 => unsafe { crate::amx::peak::int8(rounds) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Self::AmxBf16 => unsafe { crate::amx::peak::bf16(rounds) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => unreachable!("not available"),
        }
    }
}

/// Rounds of a pass: about half a millisecond, long compared with the start of a job.
const ROUNDS: usize = 100_000;

/// Operations per second that `threads` workers together reach with one instruction, for about `duration`;
/// best pass.
///
/// # Errors
/// The instruction is not available.
pub fn measure_peak(
    instruction: Instruction,
    threads: Option<usize>,
    duration: Duration,
) -> Result<f64, KernelError> {
    if !instruction.available() {
        return Err(KernelError::config(format!(
            "The peak of {} cannot be measured here: this machine or build does not support it.",
            instruction.name()
        )));
    }
    let mut pool = Pool::new(threads, &Topology::detect())?;
    let operations = instruction.run(1) * ROUNDS * pool.size();
    let best = best_pass(&mut pool, duration, &|_| {
        black_box(instruction.run(ROUNDS));
    })?;
    Ok(operations as f64 / best.as_secs_f64())
}

/// The peak of the best dispatch level's int8 dot product instruction. Portable code has none and is measured with 32-bit
/// integer multiply-adds.
pub fn measure_int8_dot(threads: Option<usize>, duration: Duration) -> Result<f64, KernelError> {
    let instruction = match Level::choose("auto")? {
        Level::Amx => Instruction::AmxInt8,
        Level::Avx512 => Instruction::Avx512Vnni,
        Level::AvxVnni => Instruction::AvxVnni,
        Level::Avx2 => Instruction::Avx2Int8,
        Level::Portable => Instruction::PortableInt,
    };
    measure_peak(instruction, threads, duration)
}

/// Independent sums of the portable loops.
const CHAINS: usize = 8;

fn portable_int(rounds: usize) -> usize {
    let mut sums = [[0i32; LANES]; CHAINS];
    let b = black_box([-5i32; LANES]);
    for round in 0..rounds {
        let a = round as i32 & 127;
        for sum in &mut sums {
            for (sum, b) in sum.iter_mut().zip(b) {
                *sum = sum.wrapping_add(a.wrapping_mul(b ^ *sum));
            }
        }
    }
    black_box(sums);
    rounds * 2 * LANES * CHAINS
}

fn portable_f32(rounds: usize) -> usize {
    let mut sums = [[1.0f32; LANES]; CHAINS];
    let (a, b) = black_box(([0.5f32; LANES], [0.5f32; LANES]));
    for _ in 0..rounds {
        for sum in &mut sums {
            for ((sum, a), b) in sum.iter_mut().zip(a).zip(b) {
                *sum = *sum * a + b;
            }
        }
    }
    black_box(sums);
    rounds * 2 * LANES * CHAINS
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::hint::black_box;

    use crate::simd::Dpbusd;

    /// Define a function that runs `$next` on independent sums, enough to cover the latency of the instruction and
    /// few enough to stay in registers, and returns the number of operations.
    macro_rules! chains {
        (
            $name:ident: $features:literal, $chains:literal chains of $operations:expr;
            $zero:expr; ($a:ident, $b:ident) = $operands:expr; $sum:ident => $next:expr
        ) => {
            /// # Safety
            /// The machine has these instructions.
            #[target_feature(enable = $features)]
            pub fn $name(rounds: usize) -> usize {
                let ($a, $b) = black_box($operands);
                let mut sums = [$zero; $chains];
                for _ in 0..rounds {
                    for $sum in &mut sums {
                        *$sum = $next;
                    }
                }
                black_box(sums);
                rounds * $chains * $operations
            }
        };
    }

    chains! {
        avx512_vnni: "avx512f,avx512bw,avx512vnni", 16 chains of 2 * 64;
        _mm512_setzero_si512(); (a, b) = (_mm512_set1_epi8(3), _mm512_set1_epi8(-5));
        sum => _mm512_dpbusd_epi32(*sum, a, b)
    }
    chains! {
        avx_vnni: "avx2", 12 chains of 2 * 32;
        _mm256_setzero_si256(); (a, b) = (_mm256_set1_epi8(3), _mm256_set1_epi8(-5));
        // SAFETY: the machine has the level by contract.
        sum => unsafe { Dpbusd::dpbusd(*sum, a, b) }
    }
    chains! {
        // The sum is an operand of the multiplication; one of constants would be hoisted out of the loop.
        avx2_maddubs: "avx2", 12 chains of 2 * 32;
        _mm256_setzero_si256(); (a, b) = (_mm256_set1_epi8(3), _mm256_set1_epi16(1));
        sum => _mm256_add_epi32(*sum, _mm256_madd_epi16(_mm256_maddubs_epi16(*sum, a), b))
    }
    chains! {
        avx512_bf16: "avx512f,avx512bf16", 24 chains of 2 * 32;
        _mm512_setzero_ps();
        (a, b) = (splat_bf16(1.0), splat_bf16(0.5));
        sum => _mm512_dpbf16_ps(*sum, a, b)
    }
    chains! {
        avx512_fma: "avx512f", 16 chains of 2 * 16;
        _mm512_setzero_ps(); (a, b) = (_mm512_set1_ps(0.5), _mm512_set1_ps(0.5));
        sum => _mm512_fmadd_ps(*sum, a, b)
    }
    chains! {
        avx2_fma: "avx2,fma", 12 chains of 2 * 8;
        _mm256_setzero_ps(); (a, b) = (_mm256_set1_ps(0.5), _mm256_set1_ps(0.5));
        sum => _mm256_fmadd_ps(*sum, a, b)
    }

    /// Broadcast a value to 32 bf16 lanes.
    ///
    /// # Safety
    /// The machine has AVX-512 with BF16.
    #[target_feature(enable = "avx512f,avx512bf16")]
    fn splat_bf16(value: f32) -> __m512bh {
        let values = _mm512_set1_ps(value);
        _mm512_cvtne2ps_pbh(values, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_instructions_are_measured_and_others_rejected_by_name() {
        for instruction in Instruction::ALL {
            let peak = measure_peak(instruction, Some(1), Duration::from_millis(1));
            match peak {
                Ok(rate) => assert!(instruction.available() && rate > 1e6),
                Err(error) => {
                    assert!(!instruction.available());
                    assert!(error.to_string().contains(instruction.name()), "{error}");
                }
            }
        }
    }

    #[test]
    fn operations_grow_with_the_rounds() {
        for instruction in Instruction::ALL.into_iter().filter(|one| one.available()) {
            assert_eq!(instruction.run(6), 3 * instruction.run(2));
        }
    }

    #[test]
    fn the_int8_dot_product_of_the_dispatch_level_has_a_peak() {
        assert!(measure_int8_dot(Some(1), Duration::from_millis(1)).unwrap() > 1e6);
    }
}
