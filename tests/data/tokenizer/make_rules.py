#!/usr/bin/env python3
"""Makes rules.json: ids of the reference library (PyPI `tokenizers`) for every pre-tokenizer rule over one small vocabulary.

    make_rules.py [TEXTS_PER_CASE] [SEED] > rules.json       needs: pip install tokenizers==0.23.3

The texts are random: letters, digits, blanks, line ends, emoji, Hangul, combining marks. Every case is a whole
tokenizer.json but for the vocabulary, which all share.
"""
import json, random, sys
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 12
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 7
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UP, LOW, TAIL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
GPT4O = (rf"[^\r\n\p{{L}}\p{{N}}]?{UP}*{LOW}+{TAIL}|[^\r\n\p{{L}}\p{{N}}]?{UP}+{LOW}*{TAIL}"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
            r"|\s*[\r\n]+|\s+(?!\S)|\s+").replace('\\"', '"')
EXAONE_MOE = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}"
              r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+")


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def byte_level(regex=False, prefix=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": False, "use_regex": regex}


def chain(*rules):
    return {"type": "Sequence", "pretokenizers": list(rules)}


def digits(single):
    return {"type": "Digits", "individual_digits": single}


NFC = {"type": "NFC"}
# name, pre_tokenizer, normalizer; "gguf" is the name of the same rules in tokenizer.ggml.pre
CASES = [("gpt-2", byte_level(True), None), ("prefix space", byte_level(True, True), None), ("one word", byte_level(), None),
         ("llama-bpe", chain(split(LLAMA3), byte_level()), None), ("qwen2", chain(split(QWEN2), byte_level()), NFC),
         ("qwen35", chain(split(QWEN35), byte_level()), {"type": "Sequence", "normalizers": [NFC]}),
         ("smollm", chain(digits(True), byte_level(True)), None), ("runs of digits", chain(digits(False), byte_level(True)), None),
         ("deepseek-v3", chain(split(r"\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"), split(DEEPSEEK), byte_level()), None),
         ("gpt-4o", chain(split(GPT4O), byte_level()), None), ("exaone-moe", chain(split(EXAONE_MOE), byte_level()), None),
         ("nested", chain(chain(digits(True), split(" ", kind="String")), byte_level(True, True)), None),
         ("string", chain(split("a.", "MergedWithPrevious", kind="String"), byte_level()), None),
         ("classes", chain(split(r"\w+|\d+|[^\w\s]+|\S|\W"), byte_level()), None),
         ("dialect", chain(split(r"\p{Han}+|\p{^L}{,2}x|[\d\w]+?!|^\s|.$|\u00e9+|(?<=a)b++"), byte_level()), None),
         ("empty match", chain(split(r"a*|\p{N}?"), byte_level()), None)]
CASES += [(f"{b}{' inverted' if i else ''}", chain(split(r"\s|\p{N}+|a", b, i), byte_level()), None)
          for b in ("Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous") for i in (False, True)]
CASES += [("Removed", chain(split(r"\s+", "Removed"), byte_level()), None),
          ("Removed inverted", chain(split(r"\S+", "Removed", True), byte_level()), None)]


def added(text, **flags):
    return {"content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False} | flags


ADDED = [added("<|end|>", special=True), added("<|end|>>", special=True), added("<tool>"), added("tin", single_word=True),
         added("<l>", lstrip=True), added("<r>", rstrip=True, special=True), added("<n>\u00e9", normalized=True), added("   "),
         added("<b>", lstrip=True, rstrip=True)]
CASES += [("added tokens", byte_level(True), None), ("added tokens, NFC", chain(split(QWEN2), byte_level()), NFC)]

ATOMS = list("abcXYZetinrdsm ") + [" ", "  ", "   ", "\n", "\r\n", "\r", "\t", "\u00a0", "\u3000", "\u180e", "\u2028", "\u0085", "\u200b"]
ATOMS += "0 7 42 123 98765 ٣ ² ½ Ⅷ ' 's 'S 'll 'RE 't ' d . , ! -- ... / // \\ _ ( ) [ ] { } # $ % ^ & * + = ~ ` \" ? @ | < >".split(" ")
ATOMS += "é e\u0301 ä a\u0308 \u0301 \u0323\u0301 \u0301\u0323 ñ ß ſ K İ ı 한 글 안녕 한국어 \u1112\u1161\u11ab 漢字 中 ひらがな カタカナ ー я Привет Ω ע م न ที่ 😀 👨\u200d👩\u200d👧 🇰🇷 ☃ € ﬁ Ǆ ǅ a. ab the tin in".split(" ")
SPECIAL = ["<|end|>", "<|end|>>", "<|end|", "<tool>", "tin", "<l>", " <l>", "<r>", "<r> ", "<n>é", "<n>e\u0301", "<b>", " <b> "]


def text(atoms):
    return "".join(random.choice(atoms) for _ in range(random.randint(0, random.choice([3, 12, 30]))))


def main():
    random.seed(SEED)
    base = Tokenizer(models.BPE())
    base.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    corpus = [text(ATOMS + ["the ", "in ", "tin ", " the"] * 8) for _ in range(3000)]
    base.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=330, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    model = json.loads(base.to_str())["model"]
    cases = []
    for name, pre, norm in CASES:
        extra, free = [], len(model["vocab"])
        for t in ADDED if name.startswith("added") else []:
            extra.append(t | {"id": model["vocab"].get(t["content"], free)})
            free += extra[-1]["id"] == free
        definition = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": extra, "normalizer": norm,
                      "pre_tokenizer": pre, "post_processor": None, "decoder": byte_level(), "model": model}
        t = Tokenizer.from_str(json.dumps(definition))
        texts = [text(ATOMS + SPECIAL * 5 if extra else ATOMS) for _ in range(COUNT * (3 if extra else 1))]
        rows = []
        for s in texts:
            t.encode_special_tokens = True
            plain = t.encode(s, add_special_tokens=False).ids
            t.encode_special_tokens = False
            rows.append([s, t.encode(s, add_special_tokens=False).ids, plain])
        cases.append({"name": name, "added_tokens": extra, "normalizer": norm, "pre_tokenizer": pre, "texts": rows})
    print('{"model":' + json.dumps(model, separators=(",", ":")) + ',\n"cases":[\n' +
          ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]}")


if __name__ == "__main__":
    main()
