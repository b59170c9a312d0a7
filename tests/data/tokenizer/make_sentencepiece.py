#!/usr/bin/env python3
"""Makes sentencepiece.json: ids and decoded texts of the reference libraries for SentencePiece-style definitions.

    make_sentencepiece.py [TEXTS_PER_CASE] [SEED] > sentencepiece.json     needs: tokenizers==0.23.3 sentencepiece==0.2.3

"cases" are whole tokenizer.json but for the vocabulary, which the models of one name share; their ids are those of
Hugging Face's tokenizers: with special tokens recognised, and (plain) without. A plain row is null where the library's
unigram makes a special token of a document's text: Wring promises that none does. "gguf" holds pieces as a GGUF does (texts, scores, types), with SentencePiece's own ids.
"""
import io, json, random, sys
import sentencepiece
from tokenizers import Tokenizer
from make_rules import ATOMS, ADDED, NFC, added, chain, split

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 12
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 11
BLANK = "\u2581"
LATIN = [a for a in ATOMS if len(a) < 4 and a.isascii()] + list("한글中é") + ["the ", "in ", "tin ", " the", "  ", "\n"] * 3


def text(atoms, longest=30):
    return "".join(random.choice(atoms) for _ in range(random.randint(0, random.choice([3, 12, longest]))))


def train(kind, **options):
    """A small SentencePiece model over the characters of LATIN, that changes nothing in a text but its blanks."""
    lines = [text(LATIN).replace("\n", " ") for _ in range(4000)]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([l for l in lines if l.strip()]), model_writer=model, model_type=kind, normalization_rule_name="identity",
        remove_extra_whitespaces=False, character_coverage=1.0, minloglevel=2, num_threads=1, user_defined_symbols=["<tool>"],
        **options)
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def pieces(sp):
    """(text, score, token_type of GGUF) by id."""
    def kind(i):
        return 2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 4 if sp.id_to_piece(i) == "<tool>" else 1
    return [(sp.id_to_piece(i), sp.get_score(i), kind(i)) for i in range(sp.get_piece_size())]


def merges_of(table):
    """The merges that transformers' converter would write: every cut of a piece into two, by falling score."""
    ids = {t: i for i, (t, _, _) in enumerate(table)}
    found = [(t[:i], t[i:], s) for t, s, k in table if k == 1 for i in range(1, len(t)) if t[:i] in ids and t[i:] in ids]
    return [[l, r] for l, r, s in sorted(found, key=lambda m: (m[2], len(m[0]), len(m[1])), reverse=True)]


def replace(pattern, content, kind="String"):
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def metaspace(scheme, cut=True):
    return {"type": "Metaspace", "replacement": BLANK, "prepend_scheme": scheme, "split": cut}


def normalizers(*steps):
    return {"type": "Sequence", "normalizers": list(steps)}


def decoders(*steps):
    return {"type": "Sequence", "decoders": list(steps)}


PREPEND, TO_BLANK = {"type": "Prepend", "prepend": BLANK}, replace(" ", BLANK)
FUSED = [replace(BLANK, " "), {"type": "ByteFallback"}, {"type": "Fuse"}]
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
LLAMA2 = dict(normalizer=normalizers(PREPEND, TO_BLANK), pre_tokenizer=None, decoder=decoders(*FUSED, STRIP))
GEMMA = dict(normalizer=TO_BLANK, pre_tokenizer=split(" ", "MergedWithPrevious", kind="String"), decoder=decoders(*FUSED))
FIRST = dict(normalizer=None, pre_tokenizer=metaspace("first", False), decoder=decoders(*FUSED, STRIP))
T5 = dict(normalizer=None, pre_tokenizer=metaspace("always"), decoder=metaspace("always"))
NO_BYTES = dict(byte_fallback=False)
# name, model, changes to the model, rules, whether it has added tokens
CASES = [("llama 2", "bpe", {}, LLAMA2, False), ("llama 2, added tokens", "bpe", {}, LLAMA2, True), ("gemma", "bpe", {}, GEMMA, False),
         ("gemma, added tokens", "bpe", {}, GEMMA, True), ("mistral v3", "bpe", {}, FIRST, False),
         ("mistral v3, added tokens", "bpe", {}, FIRST, True), ("always", "bpe", {}, T5, False), ("always, added tokens", "bpe", {}, T5, True),
         ("never", "bpe", {}, dict(normalizer=None, pre_tokenizer=metaspace("never"), decoder=metaspace("never")), False),
         ("old metaspace", "bpe", {}, T5 | dict(pre_tokenizer={"type": "Metaspace", "replacement": BLANK, "add_prefix_space": False, "prepend_scheme": "never"}), False),
         ("words", "bpe", {}, T5 | dict(pre_tokenizer=chain({"type": "WhitespaceSplit"}, metaspace("always"))), False),
         ("unknown, fused", "bpe", NO_BYTES | dict(fuse_unk=True), LLAMA2, False),
         ("unknown, each", "bpe", NO_BYTES | dict(fuse_unk=False), LLAMA2, False),
         ("whole words", "bpe", dict(ignore_merges=True), T5, False),
         ("regex and NFC", "bpe", {}, LLAMA2 | dict(normalizer=normalizers(NFC, replace(" {2,}|a+", "-", "Regex"), PREPEND, TO_BLANK)), False),
         ("unigram", "unigram", {}, T5, False), ("unigram, added tokens", "unigram", {}, T5, True),
         ("unigram, whole text", "unigram", {}, LLAMA2, False), ("unigram, unknown", "unigram", NO_BYTES, T5, False)]


def model_of(kind, table):
    if kind == "unigram":
        return {"type": "Unigram", "unk_id": 0, "vocab": [[t, s] for t, s, _ in table], "byte_fallback": True}
    return {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": True, "byte_fallback": True, "ignore_merges": False, "vocab": {t: i for i, (t, _, _) in enumerate(table)},
            "merges": merges_of(table)}


def rows_of(definition, kind, atoms, count):
    t = Tokenizer.from_str(json.dumps(definition))
    rows = []
    for s in [text(atoms) for _ in range(count)]:
        t.encode_special_tokens = True
        plain = t.encode(s, add_special_tokens=False).ids
        if kind == "unigram" and any(i < 3 and i != 0 for i in plain): plain = None
        t.encode_special_tokens = False
        ids = t.encode(s, add_special_tokens=False).ids
        rows.append([s, ids, plain, t.decode(ids, skip_special_tokens=False)])
    return rows


def main():
    random.seed(SEED)
    models = {kind: pieces(train(kind, vocab_size=420, byte_fallback=True)) for kind in ("bpe", "unigram")}
    cases = []
    for name, kind, changes, rules, has_added in CASES:
        model, free = model_of(kind, models[kind]), len(models[kind])
        extra = [added(t, id=i, special=True) for i, t in enumerate(["<unk>", "<s>", "</s>"])] + [added("<tool>", id=3)]
        for t in [a for a in ADDED if a["content"] != "<tool>"] + [added("<m>", normalized=True)] if has_added else []:
            known = [i for i, p in enumerate(models[kind]) if p[0] == t["content"]]
            extra.append(t | {"id": known[0] if known else free})
            free += not known
        definition = {"added_tokens": extra, **rules, "post_processor": None, "model": model | changes}
        atoms = ATOMS + ["the ", "in", " tin", "<tool>", "<s>"] * 3 + ["<|end|>", "<l>", " <l>", "<r> ", "<n>é", "<m>", " <m>"] * (5 * has_added)
        cases.append({"name": name, "model": kind, "changes": changes, "added_tokens": extra, **rules,
                      "texts": rows_of(definition, kind, atoms, COUNT * (2 if has_added else 1))})
    gguf = []
    for kind, options in [("bpe", {}), ("bpe", dict(add_dummy_prefix=False)), ("unigram", {})]:
        sp = train(kind, vocab_size=420, byte_fallback=True, **options)
        gguf.append({"model": {"bpe": "llama", "unigram": "t5"}[kind], "add_space_prefix": not options,
                     "tokens": [[t, s, k] for t, s, k in pieces(sp)],
                     "texts": [[s, sp.encode(s)] for s in (text(ATOMS + ["the ", "in", " tin"] * 3, 60) for _ in range(COUNT * 4)) if s.strip()]})
    dump = lambda value: json.dumps(value, separators=(",", ":"))
    print('{"models":' + dump({kind: model_of(kind, table) for kind, table in models.items()}) + ',\n"cases":[\n' +
          ",\n".join(map(dump, cases)) + '\n],\n"gguf":[\n' + ",\n".join(map(dump, gguf)) + "\n]}")


if __name__ == "__main__":
    main()
