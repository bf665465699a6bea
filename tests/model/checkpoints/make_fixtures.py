#!/usr/bin/env python3
"""Makes small checkpoints with random weights of BERT's relatives, and what Hugging Face's transformers computes from them.

    python3 -m venv v && v/bin/pip install torch transformers && v/bin/python make_fixtures.py .

FOLDER/TYPE has config.json and model.safetensors as transformers writes them, and expected.json."""
import json
import os
import shutil
import sys

import torch
import transformers

SIZES = dict(vocab_size=12, max_position_embeddings=20)
BERT = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40)
MODELS = {
    "roberta": (transformers.RobertaConfig(**SIZES, **BERT, type_vocab_size=1, pad_token_id=1, layer_norm_eps=1e-5), transformers.RobertaModel),
    "distilbert": (transformers.DistilBertConfig(**SIZES, dim=24, n_layers=2, n_heads=3, hidden_dim=40), transformers.DistilBertModel),
    "mpnet": (transformers.MPNetConfig(**SIZES, **BERT, relative_attention_num_buckets=32), transformers.MPNetModel),
}


def main(folder):
    # 16 tokens, so that distances go beyond those with a bias of their own; the second row is padded with 1.
    ids = torch.tensor([[0, 5, 6, 7, 8, 9, 10, 11, 3, 4, 5, 6, 7, 8, 9, 2], [0, 4, 3, 2] + [1] * 12])
    mask = torch.tensor([[1] * 16, [1] * 4 + [0] * 12])
    for name, (config, kind) in MODELS.items():
        torch.manual_seed(5)
        config._attn_implementation = "eager"
        model = kind(config, **({} if name == "distilbert" else {"add_pooling_layer": False})).eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, 1.0 if parameter.ndim == 1 and parameter.min() == 1 else 0.0, 0.3)
        place = os.path.join(folder, name)
        shutil.rmtree(place, ignore_errors=True)
        model.save_pretrained(place)
        with torch.no_grad():
            states = model.double()(input_ids=ids, attention_mask=mask).last_hidden_state
        with open(os.path.join(place, "expected.json"), "w") as file:
            json.dump({"ids": ids.flatten().tolist(), "mask": mask.flatten().tolist(), "shape": list(ids.shape), "states": [round(x, 6) for x in states.flatten().tolist()]}, file)
            file.write("\n")


main(sys.argv[1])
