#!/usr/bin/env python3
"""Makes small checkpoints with random weights of encoders and of classifiers, and what Hugging Face's transformers computes from them.

    python3 -m venv v && v/bin/pip install torch transformers && v/bin/python make_fixtures.py . [NAME...]

FOLDER/NAME has config.json and model.safetensors as transformers writes them, and expected.json. With names only these are made."""
import json
import os
import shutil
import sys

import torch
import transformers as t

SIZES = dict(vocab_size=12, max_position_embeddings=20)
BERT = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40)
SMALL = dict(SIZES, **dict(BERT, num_hidden_layers=1, intermediate_size=16), num_labels=3)
DEBERTA = dict(relative_attention=True, pos_att_type=["p2c", "c2p"], position_biased_input=False, type_vocab_size=0, pad_token_id=1)
MODERN = dict(hidden_size=24, num_attention_heads=3, intermediate_size=20, max_position_embeddings=20, vocab_size=12, local_attention=6, pad_token_id=1, bos_token_id=0, eos_token_id=2, cls_token_id=0, sep_token_id=2)
T5 = dict(vocab_size=12, d_model=24, d_kv=10, d_ff=32, num_layers=2, num_heads=3, pad_token_id=1, relative_attention_num_buckets=8, relative_attention_max_distance=12)
MODELS = {
    "roberta": (t.RobertaConfig(**SIZES, **BERT, type_vocab_size=1, pad_token_id=1, layer_norm_eps=1e-5), t.RobertaModel),
    "distilbert": (t.DistilBertConfig(**SIZES, dim=24, n_layers=2, n_heads=3, hidden_dim=40), t.DistilBertModel),
    "mpnet": (t.MPNetConfig(**SIZES, **BERT, relative_attention_num_buckets=32), t.MPNetModel),
    "electra": (t.ElectraConfig(**SIZES, **BERT, embedding_size=16, pad_token_id=1), t.ElectraModel),
    "albert": (t.AlbertConfig(**SIZES, **BERT, embedding_size=16, pad_token_id=1, hidden_act="gelu_new"), t.AlbertModel),
    "deberta": (t.DebertaV2Config(**SIZES, **BERT, **DEBERTA, share_att_key=True, position_buckets=8, norm_rel_ebd="layer_norm"), t.DebertaV2Model),
    "deberta_plain": (t.DebertaV2Config(**SIZES, **dict(BERT, num_hidden_layers=1), **dict(DEBERTA, position_biased_input=True, type_vocab_size=2), embedding_size=16), t.DebertaV2Model),
    "modernbert": (t.ModernBertConfig(**MODERN, num_hidden_layers=4), t.ModernBertModel),
    "nomic_bert": (t.NomicBertConfig(**SIZES, **BERT), t.NomicBertModel),
    "gte": (t.GteConfig(**SIZES, **BERT), t.GteModel),
    "t5": (t.T5Config(**T5), t.T5EncoderModel),
    "t5_gated": (t.T5Config(**T5, feed_forward_proj="gated-gelu"), t.T5EncoderModel),
    "bert_classifier": (t.BertConfig(**SMALL), t.BertForSequenceClassification),
    "roberta_classifier": (t.XLMRobertaConfig(**dict(SMALL, num_labels=1), type_vocab_size=1, pad_token_id=1), t.XLMRobertaForSequenceClassification),
    "distilbert_classifier": (t.DistilBertConfig(**SIZES, dim=24, n_layers=1, n_heads=3, hidden_dim=16, num_labels=3), t.DistilBertForSequenceClassification),
    "mpnet_classifier": (t.MPNetConfig(**SMALL), t.MPNetForSequenceClassification),
    "electra_classifier": (t.ElectraConfig(**SMALL, embedding_size=24), t.ElectraForSequenceClassification),
    "albert_classifier": (t.AlbertConfig(**SMALL, embedding_size=16), t.AlbertForSequenceClassification),
    "deberta_classifier": (t.DebertaV2Config(**SMALL, **DEBERTA, share_att_key=True, position_buckets=8), t.DebertaV2ForSequenceClassification),
    "modernbert_classifier": (t.ModernBertConfig(**MODERN, num_hidden_layers=1, num_labels=3), t.ModernBertForSequenceClassification),
}


def main(folder, wanted):
    # 16 tokens, so that distances go beyond those with a bias of their own; the second row is padded with 1.
    ids = torch.tensor([[0, 5, 6, 7, 8, 9, 10, 11, 3, 4, 5, 6, 7, 8, 9, 2], [0, 4, 3, 2] + [1] * 12])
    mask = torch.tensor([[1] * 16, [1] * 4 + [0] * 12])
    types = torch.tensor([[0] * 9 + [1] * 7, [0, 0, 1, 1] + [0] * 12])
    for name, (config, kind) in MODELS.items():
        if wanted and name not in wanted:
            continue
        torch.manual_seed(5)
        # With "eager" a padded token that sees no other is not a number, and then nothing is.
        config._attn_implementation = "sdpa" if name == "modernbert" else "eager"
        has_pooler = kind in (t.RobertaModel, t.MPNetModel, t.AlbertModel)
        model = kind(config, **({"add_pooling_layer": False} if has_pooler else {})).eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, 1.0 if parameter.ndim == 1 and parameter.min() == 1 else 0.0, 0.3)
        place = os.path.join(folder, name)
        shutil.rmtree(place, ignore_errors=True)
        model.save_pretrained(place)
        has_types = getattr(config, "type_vocab_size", 0) > 1
        with torch.no_grad():
            out = model.double()(input_ids=ids, attention_mask=mask, **({"token_type_ids": types} if has_types else {}))
        states = out.logits if "logits" in out else out.last_hidden_state
        with open(os.path.join(place, "expected.json"), "w") as file:
            made = {"ids": ids.flatten().tolist(), "mask": mask.flatten().tolist(), "shape": list(ids.shape), "states": [round(x, 6) for x in states.nan_to_num().flatten().tolist()]}
            json.dump(made | ({"types": types.flatten().tolist()} if has_types else {}), file)
            file.write("\n")


main(sys.argv[1], sys.argv[2:])
