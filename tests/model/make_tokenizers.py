"""make_tokenizers.py FOLDER: trains small tokenizers of every kind with Hugging Face's library and writes, for each, tokenizer.json
and lines.txt: texts in many scripts with the ids that the library gives, and what it decodes them to. Everything is seeded."""

import json
import os
import random
import sys

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import AddedToken, Regex

SAMPLES = [
    "The quick brown fox jumps over the lazy dog, doesn't it? I've 12,345.67 reasons; they're all \"good\" (or not).",
    "Ein Überblick über größere Straßen: Äpfel, Öl & Übung kosten 3,50 €.",
    "Déjà vu: l'été à Zürich — naïve façade, cœur, İstanbul, ΑΣ ΟΔΟΣ, ﬁne ﬂow.",
    "Привет, мир! Как дела? 42 яблока и ёлка.",
    "こんにちは世界。東京タワーは高さ333メートルです。カタカナ、ひらがな、漢字。",
    "안녕하세요 세계! 한국어 텍스트 가나다.",
    "你好，世界！今天天气很好。我有２个苹果。",
    "مرحبا بالعالم، كيف الحال؟ ١٢٣",
    "שלום עולם! מה שלומך?",
    "नमस्ते दुनिया, आप कैसे हैं? १२३",
    "สวัสดีชาวโลก ภาษาไทย",
    "emoji 😀👍🏽👩‍👩‍👧 and signs ± × ÷ ≤ ≥ → ∞ π²",
    "tabs\tand\nnew lines\r\n  double  spaces   end ",
    "code: for (int i = 0; i < n; ++i) { x[i] += y[i] * 0.5f; } // don't",
    "\u200bzero\u200bwidth\u00a0nbsp\u2003em\u3000wide\ufeffbom",
    "combining: e\u0301 a\u0308 n\u0303 \u1100\u1161\u11a8 \u0915\u093c",
    "URLs https://example.org/a?b=c&d=e#f mail@example.org @user #tag",
    "ALL CAPS, MixedCase, snake_case, kebab-case, camelCase42x7",
]


def lines(count):
    rng = random.Random(7)
    words = [word for sample in SAMPLES for word in sample.split(" ")]
    out = list(SAMPLES) + ["", " ", "  ", "[MASK]", "a [MASK] b", "<mask>x", "a" * 120, "\n\n\n", "x  \n y"]
    while len(out) < count:
        text = ""
        for _ in range(rng.randint(1, 14)):
            text += rng.choice(words)
            if rng.random() < 0.15:
                text += chr(rng.choice([rng.randint(32, 126), rng.randint(160, 0x24F), rng.randint(0x370, 0x1FFF), rng.randint(0x2000, 0x2BFF), rng.randint(0x3041, 0x9FFF), rng.randint(0x1F300, 0x1FAFF)]))
            text += rng.choice([" ", " ", " ", "  ", "", "\n", "\t", ". ", ", ", "'s ", "!"])
        out.append(text)
    return out


def bert(lower):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=900, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False)
    tokenizer.train_from_iterator(SAMPLES, trainer)
    cls, sep = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", cls), ("[SEP]", sep)])
    return tokenizer


def gpt(prefix, pattern=None):
    tokenizer = Tokenizer(models.BPE())
    level = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=pattern is None)
    tokenizer.pre_tokenizer = level if pattern is None else pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), level])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=["<s>", "</s>", "<mask>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(SAMPLES, trainer)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    return tokenizer


def llama():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=1000, special_tokens=special, limit_alphabet=120, show_progress=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(SAMPLES, trainer)
    tokenizer.pre_tokenizer = None
    return tokenizer


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=500, unk_token="<unk>", special_tokens=["<s>", "<pad>", "</s>", "<unk>"], show_progress=False)
    tokenizer.train_from_iterator(SAMPLES, trainer)
    return tokenizer


LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def main(folder):
    kinds = {"bert": bert(True), "bert_cased": bert(False), "gpt2": gpt(False), "roberta": gpt(True), "llama3": gpt(False, LLAMA3), "qwen": gpt(False, QWEN), "llama": llama(), "unigram": unigram()}
    texts = lines(1300)
    for name, tokenizer in kinds.items():
        place = os.path.join(folder, name)
        os.makedirs(place, exist_ok=True)
        tokenizer.save(os.path.join(place, "tokenizer.json"))
        with open(os.path.join(place, "lines.txt"), "w", encoding="utf-8") as file:
            for text in texts:
                one = tokenizer.encode(text)
                json.dump({"text": text, "ids": one.ids, "types": one.type_ids, "decoded": tokenizer.decode(one.ids)}, file)
                file.write("\n")


main(sys.argv[1])
