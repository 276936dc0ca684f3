//! Dimensions of a BERT encoder, read from its `config.json`.

use serde::Deserialize;

use crate::error::KernelError;
use crate::simd::LANES;

const MAX_WIDTH: usize = 1 << 16;
const MAX_LAYERS: usize = 1024;
const MAX_VOCAB: usize = 1 << 24;
const MAX_POSITIONS: usize = 1 << 16;

/// The fields of `config.json` that are used; others are ignored.
#[derive(Debug, Deserialize)]
struct Config {
    model_type: String,
    hidden_act: String,
    #[serde(default)]
    position_embedding_type: Option<String>,
    hidden_size: usize,
    intermediate_size: usize,
    layer_norm_eps: f32,
    max_position_embeddings: usize,
    num_attention_heads: usize,
    num_hidden_layers: usize,
    #[serde(default = "two")]
    type_vocab_size: usize,
    vocab_size: usize,
}

fn two() -> usize {
    2
}

/// Field names are those of Hugging Face's `BertConfig`.
#[derive(Debug, Clone, PartialEq)]
pub struct BertSpec {
    pub hidden_size: usize,
    pub intermediate_size: usize,
    pub layer_norm_eps: f32,
    pub max_positions: usize,
    pub num_heads: usize,
    pub num_layers: usize,
    pub token_types: usize,
    pub vocab_size: usize,
}

impl BertSpec {
    /// # Errors
    /// The text is not the configuration of a supported BERT encoder.
    pub fn from_json(text: &str) -> Result<Self, KernelError> {
        let config: Config = serde_json::from_str(text).map_err(|error| {
            KernelError::model(format!(
                "The encoder's config.json cannot be read: {error}."
            ))
        })?;
        let position = config
            .position_embedding_type
            .as_deref()
            .unwrap_or("absolute");
        for (name, found, needed) in [
            ("model_type", config.model_type.as_str(), "bert"),
            ("hidden_act", config.hidden_act.as_str(), "gelu"),
            ("position_embedding_type", position, "absolute"),
        ] {
            if found != needed {
                return Err(KernelError::model(format!(
                    "The encoder's {name} is {found:?}; only {needed:?} is supported."
                )));
            }
        }
        for (name, value, most) in [
            ("hidden_size", config.hidden_size, MAX_WIDTH),
            ("intermediate_size", config.intermediate_size, MAX_WIDTH),
            ("num_attention_heads", config.num_attention_heads, MAX_WIDTH),
            ("num_hidden_layers", config.num_hidden_layers, MAX_LAYERS),
            ("vocab_size", config.vocab_size, MAX_VOCAB),
            ("type_vocab_size", config.type_vocab_size, MAX_VOCAB),
            (
                "max_position_embeddings",
                config.max_position_embeddings,
                MAX_POSITIONS,
            ),
        ] {
            if !(1..=most).contains(&value) {
                return Err(KernelError::model(format!(
                    "The encoder's {name} is {value}; it must be between 1 and {most}."
                )));
            }
        }
        let (hidden, heads) = (config.hidden_size, config.num_attention_heads);
        let whole = hidden.is_multiple_of(heads)
            && (hidden / heads).is_multiple_of(LANES)
            && config.intermediate_size.is_multiple_of(LANES);
        if !whole {
            return Err(KernelError::model(format!(
                "An encoder of width {hidden} with {heads} heads and {} in between is not supported: \
                 heads and layers must be multiples of {LANES} wide.",
                config.intermediate_size
            )));
        }
        if !(config.layer_norm_eps > 0.0 && config.layer_norm_eps < 1.0) {
            return Err(KernelError::model(format!(
                "The encoder's layer_norm_eps is {}; it must be between 0 and 1.",
                config.layer_norm_eps
            )));
        }
        Ok(Self {
            hidden_size: hidden,
            intermediate_size: config.intermediate_size,
            layer_norm_eps: config.layer_norm_eps,
            max_positions: config.max_position_embeddings,
            num_heads: heads,
            num_layers: config.num_hidden_layers,
            token_types: config.type_vocab_size,
            vocab_size: config.vocab_size,
        })
    }

    pub fn head_dim(&self) -> usize {
        self.hidden_size / self.num_heads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID_CONFIG: &str = r#"{"model_type": "bert", "hidden_act": "gelu", "hidden_size": 64,
        "intermediate_size": 96, "layer_norm_eps": 1e-12, "max_position_embeddings": 40,
        "num_attention_heads": 2, "num_hidden_layers": 3, "vocab_size": 50, "architectures": []}"#;

    #[test]
    fn a_configuration_is_read() {
        let spec = BertSpec::from_json(VALID_CONFIG).unwrap();
        assert_eq!(
            (spec.head_dim(), spec.token_types, spec.max_positions),
            (32, 2, 40)
        );
    }

    #[test]
    fn unsupported_configurations_are_rejected_by_name() {
        for (from, to, named) in [
            ("\"bert\"", "\"roberta\"", "model_type"),
            ("\"gelu\"", "\"relu\"", "hidden_act"),
            ("\"vocab_size\": 50", "\"vocab_size\": 0", "vocab_size"),
            (
                "\"num_hidden_layers\": 3",
                "\"num_hidden_layers\": 99999",
                "num_hidden_layers",
            ),
            (
                "\"hidden_size\": 64",
                "\"hidden_size\": 48",
                "multiples of 16",
            ),
            ("\"hidden_size\": 64", "\"hidden_size\": -1", "config.json"),
            ("1e-12", "0", "layer_norm_eps"),
            ("\"hidden_size\": 64,", "", "hidden_size"),
        ] {
            let text = VALID_CONFIG.replace(from, to);
            assert_ne!(text, VALID_CONFIG, "{from}");
            let message = BertSpec::from_json(&text).unwrap_err().to_string();
            assert!(
                message.contains(named) && message.ends_with('.'),
                "{message}"
            );
        }
    }
}
