use super::*;
use serde_json::{Value, json};

/// A reference to a whole tensor.
pub(crate) fn whole(name: &str) -> Value {
    json!({ "name": name, "start": 0, "run": 0, "step": 0, "transposed": false, "add": 0.0, "parts": 0 })
}

pub(crate) fn tiny_rope() -> Value {
    json!({
        "theta": 10000.0, "dim": 16, "style": "half", "pairs": null, "divisors": [],
        "scaling": {
            "kind": "none", "factor": 1.0, "original_context": 0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": true,
            "attention_factor": null, "short_divisors": [], "long_divisors": [] },
    })
}

/// A layer of a GGUF file of a llama.
fn tiny_layer(index: usize) -> Value {
    let roles = [
        ("mixer_norm", "attn_norm"),
        ("q", "attn_q"),
        ("k", "attn_k"),
        ("v", "attn_v"),
        ("o", "attn_output"),
        ("ffn_norm", "ffn_norm"),
        ("gate", "ffn_gate"),
        ("up", "ffn_up"),
        ("down", "ffn_down"),
    ];
    let tensors: serde_json::Map<String, Value> = roles
        .into_iter()
        .map(|(role, name)| (role.into(), whole(&format!("blk.{index}.{name}.weight"))))
        .collect();
    json!({
        "mixer": {
            "kind": "attention", "num_heads": 4, "num_kv_heads": 2, "head_dim": 16,
            "scale": 0.25, "rope": 0, "window": 0, "qk_norm_whole": false, "value_norm": false,
            "softcap": 0.0, "kv_layer": null, "temperature": null },
        "ffn": { "kind": "mlp", "intermediate_size": 96, "activation": "silu" },
        "tensors": tensors,
    })
}

pub(crate) fn tiny_json() -> Value {
    json!({
        "architecture": "llama", "hidden_size": 64, "vocab_size": 128, "context_length": 256,
        "norm": "rms", "norm_eps": 1e-5, "embedding_multiplier": 1.0,
        "residual_multiplier": 1.0, "logit_multiplier": 1.0, "logit_softcap": 0.0,
        "per_layer_width": 0, "ropes": [tiny_rope()],
        "layers": [tiny_layer(0), tiny_layer(1)],
        "tensors": {
            "embedding": whole("token_embd.weight"), "final_norm": whole("output_norm.weight") },
    })
}

fn rejection(change: impl FnOnce(&mut Value)) -> String {
    let mut value = tiny_json();
    change(&mut value);
    ModelSpec::from_json(&value.to_string())
        .expect_err("must be refused")
        .to_string()
}

#[test]
fn a_valid_spec_is_read() {
    let spec = ModelSpec::from_json(&tiny_json().to_string()).unwrap();
    assert_eq!(spec.attentions().count(), 2);
    assert_eq!(spec.layers[1].attention().unwrap().group_size(), 2);
    assert_eq!(spec.ropes[0].rotated_pairs(), 8);
    assert!(spec.tied_embeddings());
}

#[test]
fn invalid_specs_are_rejected_with_a_sentence() {
    assert!(rejection(|v| v["hidden_size"] = 0.into()).contains("hidden size is 0"));
    let mixer = |name: &'static str, value: Value| {
        rejection(move |v| v["layers"][1]["mixer"][name] = value)
    };
    assert!(mixer("num_kv_heads", 3.into()).contains("share evenly"));
    assert!(mixer("head_dim", 513.into()).contains("head dimension"));
    assert!(mixer("head_dim", 8.into()).contains("pairs 16"));
    assert!(mixer("rope", 1.into()).contains("names rotary embedding 1"));
    assert!(mixer("kind", "telepathy".into()).contains("not readable"));
    assert!(mixer("scale", 0.0.into()).contains("attention scale"));
    assert!(mixer("kv_layer", 1.into()).contains("no such keys"));
    assert!(rejection(|v| v["ropes"][0]["dim"] = 15.into()).contains("even"));
    assert!(rejection(|v| v["ropes"][0]["pairs"] = 9.into()).contains("rotates 9"));
    assert!(rejection(|v| v["ropes"][0]["divisors"] = json!([1.0])).contains("8 divisors"));
    assert!(
        rejection(|v| v["streams"] = json!({"count": 5, "active": 0})).contains("stream 0 of 5")
    );
    assert!(
        rejection(|v| v["streams"] = json!({"count": 2, "active": 2})).contains("stream 2 of 2")
    );
    assert!(rejection(|v| v["laurel_rank"] = (1u64 << 40).into()).contains("rank beside mixers"));
    assert!(
        rejection(|v| {
            v["layers"][0]["ffn"]["cutoff"] = 1e39.into();
        })
        .contains("no number")
    );
    assert!(rejection(|v| v["surprise"] = 1.into()).contains("surprise"));
    assert!(
        rejection(|v| v["ropes"][0]["scaling"]["kind"] = "yarn".into()).contains("pre-training")
    );
    assert!(rejection(|v| v["vocab_size"] = (1u64 << 40).into()).contains("vocabulary"));
    assert!(rejection(|v| v["ropes"][0]["theta"] = (-1.0).into()).contains("rotary base"));
    assert!(
        rejection(|v| v["layers"][0]["tensors"]["q"]["start"] = (1u64 << 50).into())
            .contains("impossible rows")
    );
}

/// Experts of a tiny layer.
pub(crate) fn tiny_experts() -> Value {
    json!({
        "kind": "experts", "count": 8, "used": 2, "intermediate_size": 32, "activation": "silu",
        "routing": {
            "scores": "softmax", "renormalise": true, "scale": 1.0, "logit_scale": 1.0, "groups": 1,
            "used_groups": 1 },
        "shared": { "kind": "mlp", "intermediate_size": 64, "activation": "silu" },
    })
}

#[test]
fn experts_are_read() {
    let mut value = tiny_json();
    value["layers"][1]["ffn"] = tiny_experts();
    let spec = ModelSpec::from_json(&value.to_string()).unwrap();
    let Some(FeedForwardSpec::Experts(experts)) = &spec.layers[1].ffn else {
        panic!("no experts");
    };
    assert_eq!((experts.count, experts.used), (8, 2));
    assert_eq!(experts.shared.as_ref().unwrap().intermediate_size, 64);
}

#[test]
fn layers_that_need_a_window_only_are_those_whose_readers_all_have_one() {
    let windows = |windows: [usize; 3], kv_layer: Option<usize>, context: usize| {
        let mut value = tiny_json();
        let third = tiny_layer(2);
        value["layers"].as_array_mut().unwrap().push(third);
        for (layer, window) in windows.into_iter().enumerate() {
            value["layers"][layer]["mixer"]["window"] = window.into();
        }
        if let Some(source) = kv_layer {
            value["layers"][2]["mixer"]["kv_layer"] = source.into();
        }
        let spec = ModelSpec::from_json(&value.to_string()).unwrap();
        let found = spec.windows(context);
        (found.tokens, found.layers)
    };
    assert_eq!(windows([0, 0, 0], None, 256), (0, vec![false; 3]));
    assert_eq!(
        windows([8, 0, 16], None, 256),
        (16, vec![true, false, true])
    );
    // A window as long as the context hides nothing.
    assert_eq!(windows([8, 0, 64], None, 64), (8, vec![true, false, false]));
    // A block is a block of some layer.
    assert_eq!(windows([8, 8, 8], None, 256), (8, vec![false, true, true]));
    // The third layer reads the keys of the first or the second.
    assert_eq!(windows([8, 0, 8], Some(0), 256), (8, vec![true, false]));
    assert_eq!(windows([0, 8, 0], Some(1), 256), (0, vec![false, false]));
}

#[test]
fn impossible_experts_are_rejected_with_a_sentence() {
    let experts = |change: fn(&mut Value)| {
        rejection(move |v| {
            v["layers"][1]["ffn"] = tiny_experts();
            change(&mut v["layers"][1]["ffn"]);
        })
    };
    assert!(experts(|v| v["count"] = 0.into()).contains("expert count is 0"));
    assert!(experts(|v| v["used"] = 9.into()).contains("uses is 9"));
    assert!(experts(|v| v["used"] = 0.into()).contains("uses is 0"));
    assert!(experts(|v| v["intermediate_size"] = 0.into()).contains("experts' intermediate"));
    assert!(experts(|v| v["routing"]["scale"] = 0.0.into()).contains("experts' weights"));
    assert!(experts(|v| v["routing"]["logit_scale"] = 0.0.into()).contains("experts' logits"));
    assert!(experts(|v| v["routing"]["groups"] = 3.into()).contains("impossible"));
    assert!(experts(|v| v["routing"]["groups"] = 8.into()).contains("impossible"));
    assert!(experts(|v| v["routing"]["used_groups"] = 2.into()).contains("groups that"));
    assert!(
        experts(|v| {
            v["count"] = 200.into();
            v["routing"]["groups"] = 100.into();
            v["routing"]["used_groups"] = 65.into();
        })
        .contains("uses is 65; it must be between 1 and 64")
    );
    assert!(experts(|v| v["routing"]["scores"] = "dice".into()).contains("not readable"));
    assert!(experts(|v| v["shared"] = tiny_experts()).contains("the shared network is an mlp"));
    assert!(
        rejection(|v| {
            v["layers"][1]["ffn"] = tiny_experts();
            v["layers"][1]["ffn"]["shared"] = Value::Null;
            v["layers"][1]["tensors"]["experts_norm"] = whole("norm");
        })
        .contains("beside a network")
    );
    assert!(experts(|v| v["shared"]["intermediate_size"] = 0.into()).contains("intermediate size"));
    assert!(
        rejection(|v| {
            let tensor = &mut v["layers"][0]["tensors"]["q"];
            (tensor["parts"], tensor["start"]) = (2.into(), 1.into());
        })
        .contains("impossible rows")
    );
}

fn with_mixer(mixer: Value) -> Value {
    let mut value = tiny_json();
    value["layers"][0]["mixer"] = mixer;
    value
}

fn delta_net() -> Value {
    json!({
        "kind": "gated_delta_net", "kernel": 4, "num_heads": 4, "num_key_heads": 2,
        "key_dim": 8, "value_dim": 24, "tiled": true })
}

#[test]
fn recurrent_mixers_have_states() {
    let state = |mixer: Value| {
        let spec = ModelSpec::from_json(&with_mixer(mixer).to_string()).unwrap();
        spec.layers[0].state(spec.hidden_size)
    };
    let conv = state(json!({ "kind": "short_conv", "kernel": 3 }));
    assert_eq!(
        conv,
        LayerState {
            conv: 2 * 64,
            heads: 0
        }
    );
    // 2 * 2 * 8 + 4 * 24 channels; values are padded to 32.
    let delta = state(delta_net());
    assert_eq!(
        delta,
        LayerState {
            conv: 3 * 128,
            heads: 4 * 8 * 32
        }
    );
    let mamba = state(json!({
        "kind": "mamba2", "kernel": 4, "num_heads": 6, "num_groups": 1, "head_dim": 16,
        "state_dim": 12 }));
    assert_eq!(
        mamba,
        LayerState {
            conv: 3 * 128,
            heads: 6 * 12 * 16
        }
    );
}

#[test]
fn invalid_recurrent_mixers_are_rejected_with_a_sentence() {
    let refused = |field: &'static str, number: usize| {
        rejection(move |v| {
            *v = with_mixer(delta_net());
            v["layers"][0]["mixer"][field] = number.into();
        })
    };
    assert!(
        rejection(|v| {
            *v = with_mixer(delta_net());
            v["norm"] = "layer".into();
        })
        .contains("RMS norms")
    );
    let without_attention = |v: &mut Value| {
        for layer in v["layers"].as_array_mut().expect("layers") {
            layer["mixer"] = json!({ "kind": "short_conv", "kernel": 3 });
        }
    };
    assert!(rejection(without_attention).contains("no layer with attention"));
    assert!(refused("kernel", 9).contains("convolution's kernel is 9"));
    assert!(refused("num_heads", 0).contains("head count is 0"));
    assert!(refused("num_key_heads", 3).contains("share evenly"));
    assert!(refused("num_key_heads", 8).contains("heads with keys"));
    assert!(refused("key_dim", 513).contains("key dimension"));
    assert!(refused("value_dim", 0).contains("value dimension"));
    assert!(
        rejection(|v| *v = with_mixer(json!({ "kind": "short_conv", "kernel": 0 })))
            .contains("kernel is 0")
    );
}

#[test]
fn rows_of_a_weight_are_taken_in_runs() {
    let mut tensor: TensorRef = serde_json::from_value(whole("x")).unwrap();
    tensor.start = 3;
    assert_eq!(tensor.row(5), 8);
    (tensor.run, tensor.step) = (2, 5);
    let rows: Vec<usize> = (0..5).map(|row| tensor.row(row)).collect();
    assert_eq!(rows, [3, 4, 8, 9, 13]);
}
