//! Instruction set levels and their selection.
//!
//! The level is chosen once, when the model is loaded: the environment variable `PRAVAHA_DISPATCH` if set (so that tests can
//! force it in any process), else the configured level, else the best one available.

use crate::amx;
use crate::error::KernelError;

/// Environment variable that overrides the configured level.
pub const DISPATCH_ENV: &str = "PRAVAHA_DISPATCH";

/// Instruction set levels that have their own kernels, slowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Plain Rust, vectorised by the compiler.
    Portable,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX2 with int8 dot products on 256 bits (AVX-VNNI).
    AvxVnni,
    /// AVX-512 F, BW, VL, DQ and VNNI.
    Avx512,
    /// AMX tiles for GEMMs of more than a few rows, AVX-512 for everything else.
    Amx,
}

impl Level {
    /// Every level, best first.
    pub const ALL: [Self; 5] = [
        Self::Amx,
        Self::Avx512,
        Self::AvxVnni,
        Self::Avx2,
        Self::Portable,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::AvxVnni => "avxvnni",
            Self::Avx512 => "avx512",
            Self::Amx => "amx",
        }
    }

    /// Whether this process can run the level.
    ///
    /// In this crate's tests, level `amx` needs only AVX-512: tiles are emulated where the hardware lacks them. `best` and
    /// `choose` never select an emulated level.
    pub fn available(self) -> bool {
        self.obstacle().is_none() || cfg!(test) && self == Self::Amx && self.instructions()
    }

    /// Why this process cannot run the level, as a clause of a sentence; None if it can.
    pub fn obstacle(self) -> Option<String> {
        if self == Self::Amx {
            let below = Self::Avx512.obstacle();
            return below.or_else(|| amx::support::support().err().map(|why| why.to_string()));
        }
        let needs = match self {
            Self::Avx512 => "AVX-512 F, BW, VL, DQ and VNNI",
            Self::AvxVnni => "AVX2, FMA, F16C and AVX-VNNI",
            _ => "AVX2, FMA and F16C",
        };
        (!self.instructions()).then(|| format!("the processor lacks some of {needs}"))
    }

    /// Whether the processor has the level's instructions and the operating system saves their registers.
    fn instructions(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => Self::Avx2.instructions() && (vex_vnni() || cfg!(test) && evex_vnni()),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 | Self::Amx => {
                Self::Avx2.instructions()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vnni")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The best level of this machine.
    pub fn best() -> Self {
        Self::ALL
            .into_iter()
            .find(|level| level.obstacle().is_none())
            .expect("portable always runs")
    }

    /// Choose a level by its configured name; `auto` means the best available. [`DISPATCH_ENV`] takes precedence.
    pub fn choose(configured: &str) -> Result<Self, KernelError> {
        match std::env::var(DISPATCH_ENV) {
            Ok(forced) if !forced.is_empty() => Self::parse(&forced),
            _ => Self::parse(configured),
        }
    }

    fn parse(name: &str) -> Result<Self, KernelError> {
        if name == "auto" {
            return Ok(Self::best());
        }
        let level = Self::ALL
            .into_iter()
            .find(|level| level.name() == name)
            .ok_or_else(|| {
                KernelError::config(format!(
                    "There is no dispatch level {name:?}: choose auto, amx, avx512, avxvnni, avx2 or portable."
                ))
            })?;
        if let Some(obstacle) = level.obstacle() {
            return Err(KernelError::config(format!(
                "This machine cannot run dispatch level {name}, because {obstacle}: choose {}.",
                Self::best().name()
            )));
        }
        Ok(level)
    }
}

/// Whether the processor has the VEX form of `vpdpbusd` on 256 bits, which level `avxvnni` runs.
#[cfg(target_arch = "x86_64")]
pub(crate) fn vex_vnni() -> bool {
    is_x86_feature_detected!("avxvnni")
}

/// Whether the processor has the EVEX form of `vpdpbusd` on 256 bits. In this crate's tests, level `avxvnni` runs it where the VEX
/// form is missing.
#[cfg(target_arch = "x86_64")]
pub(crate) fn evex_vnni() -> bool {
    is_x86_feature_detected!("avx512vnni") && is_x86_feature_detected!("avx512vl")
}

/// Whether floating-point additions execute on separate pipes from multiplications, as on AMD cores. Kernels then prefer
/// additions where both give the same bits.
#[cfg(target_arch = "x86_64")]
pub fn separate_add_pipes() -> bool {
    // SAFETY: every x86-64 processor has the instruction; it reads registers. (Newer compilers call it safe.)
    #[allow(unused_unsafe)]
    let vendor = unsafe { std::arch::x86_64::__cpuid(0) };
    let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
    name.as_flattened() == b"AuthenticAMD"
}

/// Instruction set extensions of this processor that are relevant to the kernels, including ones not used yet.
pub fn cpu_flags() -> Vec<(&'static str, bool)> {
    #[cfg(target_arch = "x86_64")]
    {
        vec![
            ("avx2", is_x86_feature_detected!("avx2")),
            ("fma", is_x86_feature_detected!("fma")),
            ("f16c", is_x86_feature_detected!("f16c")),
            ("avxvnni", is_x86_feature_detected!("avxvnni")),
            ("avx512f", is_x86_feature_detected!("avx512f")),
            ("avx512bw", is_x86_feature_detected!("avx512bw")),
            ("avx512vl", is_x86_feature_detected!("avx512vl")),
            ("avx512dq", is_x86_feature_detected!("avx512dq")),
            ("avx512vnni", is_x86_feature_detected!("avx512vnni")),
            ("avx512bf16", is_x86_feature_detected!("avx512bf16")),
            ("avx512fp16", is_x86_feature_detected!("avx512fp16")),
        ]
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_takes_the_best_and_portable_always_runs() {
        assert_eq!(Level::parse("auto").unwrap(), Level::best());
        assert_eq!(Level::parse("portable").unwrap(), Level::Portable);
    }

    #[test]
    fn unknown_and_unavailable_levels_are_rejected_with_a_sentence() {
        assert!(
            Level::parse("mmx")
                .unwrap_err()
                .to_string()
                .contains("no dispatch level")
        );
        for level in Level::ALL {
            let Some(obstacle) = level.obstacle() else {
                continue;
            };
            let message = Level::parse(level.name()).unwrap_err().to_string();
            assert!(message.contains("cannot run"), "{message}");
            assert!(message.contains(&obstacle), "{message}");
        }
    }
}
