//! Checks of numbers of a spec.

use crate::error::KernelError;

/// `value` is between 1 and `max`.
pub(super) fn bounded(name: &str, value: usize, max: usize) -> Result<(), KernelError> {
    if value == 0 || value > max {
        return Err(KernelError::model(format!(
            "The model's {name} is {value}; it must be between 1 and {max}."
        )));
    }
    Ok(())
}

/// `value` is a number above 0.
pub(super) fn positive(name: &str, value: f64) -> Result<(), KernelError> {
    if !(value.is_finite() && value > 0.0) {
        return Err(KernelError::model(format!(
            "The model's {name} is {value}; it must be a number above 0."
        )));
    }
    Ok(())
}

/// `value` is a number, at least 0.
pub(super) fn not_negative(name: &str, value: f32) -> Result<(), KernelError> {
    if !(value.is_finite() && value >= 0.0) {
        return Err(KernelError::model(format!(
            "The model's {name} must be a number ≥ 0."
        )));
    }
    Ok(())
}
