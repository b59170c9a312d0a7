#!/usr/bin/env python3
"""The command line as users and scripts rely on it (docs/CLI.md): exit codes, error lines, JSON keys, files that appear whole or not at all.

    cli_test.py WRING        runs on the tiny models of tests/data; standard library only
"""
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

WRING = pathlib.Path(sys.argv.pop(1)).resolve()
DATA = pathlib.Path(__file__).resolve().parent / "data"
WORDS = "the cat sat on the mat and the other cat ran to the station in the rain while it was late ".split()


def documents(first, count):
    return "".join(json.dumps({"id": f"d{i}", "domain": "ab"[i % 2], "text": f"{i} " + " ".join(WORDS[(i * 7 + j * j) % len(WORDS)] for j in range(120))}) + "\n"
                   for i in range(first, first + count))


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp())
        self.model = self.dir / "model"
        self.model.mkdir()
        for part in ("arch/llama/config.json", "arch/llama/model.safetensors", "tokenizer/tok_llama/tokenizer.json",
                     "tokenizer/tok_llama/tokenizer_config.json"):
            shutil.copy(DATA / part, self.model)
        self.text, self.calibration = self.dir / "text.jsonl", self.dir / "calibration.jsonl"
        self.text.write_text(documents(0, 6))
        self.calibration.write_text(documents(100, 9))

    def tearDown(self):
        shutil.rmtree(self.dir)

    def run_wring(self, *args, code=0, env=None):
        p = subprocess.run([WRING, *map(str, args)], capture_output=True, encoding="utf-8", cwd=self.dir, env={**os.environ, **(env or {})})
        self.assertEqual(p.returncode, code, p.stderr)
        return p

    def json_of(self, *args):
        return json.loads(self.run_wring(*args, "--json").stdout)

    def refused(self, code, *args, says=(), env=None):
        p = self.run_wring(*args, code=code, env=env)
        lines = p.stderr.splitlines()
        self.assertEqual(len([line for line in lines if line.startswith("error: ")]), 1, p.stderr)
        for part in says:
            self.assertIn(part, lines[-1])

    def test_exit_codes_and_error_lines(self):
        self.refused(2, "no-such-command")
        self.refused(2, "run", self.model, "--ids", "1,x")
        self.refused(3, "info", self.dir / "missing.gguf", says=["missing.gguf"])
        self.refused(3, "logits", self.model, "--ids", "320", "-o", "l.safetensors", says=["320"])
        self.refused(4, "quantize", self.model, "--recipe", "nvfp8", "-o", "o.gguf", says=["nvfp8"])
        self.refused(2, "doctor", env={"WRING_ISA": "sse9"}, says=["sse9"])
        self.refused(5, "quantize", self.model, "--recipe", "q8_0", "-o", "no/such/folder/o.gguf", says=["o.gguf"])
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["calibration.jsonl", "model", "text.jsonl"])

    def test_inputs_are_never_overwritten(self):
        (self.model / "more").mkdir()
        shutil.copy(self.text, self.model / "more/other.gguf")
        for args in (["logits", self.model, "--ids", "1", "-o", self.model / "model.safetensors"],
                     ["convert", self.model, "-o", self.model / "more/other.gguf"],
                     ["imatrix", self.model, "--text", self.calibration, "-o", self.calibration],
                     ["quantize", self.model, "--recipe", "q8_0", "-o", self.model / "more/other.gguf"]):
            before = pathlib.Path(args[-1]).read_bytes()
            self.refused(2, *args, says=["replace"])
            self.assertEqual(pathlib.Path(args[-1]).read_bytes(), before)

    def test_odd_arguments_are_refused_before_any_work(self):
        self.refused(2, "eval", self.model, "--against", "", "--text", self.text, says=["--against", "empty"])
        self.refused(2, "run", self.model, "--ids", "", says=["--ids", "empty"])
        self.refused(2, "run", self.model, "--json", says=["chat", "--json"])
        self.refused(2, "convert", self.model, "-o", "o.gguf", "--type", "q4_k", says=["q4_k", "wring quantize"])
        self.refused(2, "convert", self.model, "-o", "o", "--type", "q8_0", says=["q8_0", "folder"])
        p = self.run_wring("quantize", self.model, "--recipe", "q8_0", "-o", "o.bin", code=2)
        self.assertEqual((p.stdout, p.stderr.count("\n")), ("", 1))
        self.assertIn(".gguf", p.stderr)
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["calibration.jsonl", "model", "text.jsonl"])

    def test_more_threads_than_cores_are_not_used(self):
        p = self.run_wring("doctor", "--json", "--threads", "100000")
        self.assertEqual(json.loads(p.stdout)["threads"], self.json_of("doctor")["threads"])
        self.assertEqual([line.split(":")[0] for line in p.stderr.splitlines()], ["warning"])

    def test_a_signal_ends_a_chat_with_130(self):
        (self.model / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
        for number in (signal.SIGINT, signal.SIGTERM):
            for begun in (False, True):  # before the first reply, and after it
                p = subprocess.Popen([WRING, "run", self.model, "-n", "4"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                if begun:
                    p.stdin.write(b"the cat\n")
                    p.stdin.flush()
                seen = b""
                while seen.count(b"> ") < (2 if begun else 1):
                    piece = os.read(p.stderr.fileno(), 1)
                    self.assertTrue(piece, seen)
                    seen += piece
                time.sleep(0.2)  # from the prompt to the read behind it
                p.send_signal(number)
                p.communicate(timeout=30)
                self.assertEqual(p.returncode, 130)

    def test_info_and_doctor(self):
        info = self.json_of("info", self.model)
        self.assertEqual(info["architecture"], "llama")
        self.assertEqual(info["parameters"], sum(t["bytes"] // 4 for t in info["tensors"]))
        self.assertEqual(info["bits_per_weight"], 32)
        self.assertEqual(self.json_of("doctor", "--threads", "1")["threads"], 1)
        doctor = self.json_of("doctor")
        self.assertIn(doctor["isa"], ("scalar", "avx2", "avx512"))
        self.assertGreater(doctor["read_bandwidth_gbps"], 0)
        pays = "AuthenticAMD" in pathlib.Path("/proc/cpuinfo").read_text()
        bf16 = doctor["isa"] == "avx512" and doctor["avx512_bf16"] and pays
        self.assertEqual(doctor["bf16_gmacs"] is not None, bf16)

    def test_bench(self):
        out = self.json_of("bench", self.model, "--prompt", "8", "--generate", "4", "--batch", "1,2", "--steps", "2,1", "--runs", "2",
                           "--threads", "1")
        self.assertEqual([(row["prompt"], row["batch"]) for row in out["rows"]], [(8, 1), (8, 2)])
        self.assertEqual([(step["prompt"], step["positions"]) for step in out["steps"]], [(8, 2), (8, 1)])
        self.assertEqual(out["steps"][1]["times_one"]["median"], 1)
        for row in out["rows"]:
            self.assertGreater(row["decode_tokens_per_s"], 0)
            self.assertGreater(row["kv_bytes"], 0)
        self.refused(2, "bench", self.model, "--steps", "0")
        self.refused(3, "bench", self.model, "--steps", "4000", says=["4000 positions", "context"])

    def test_levels_give_the_same_bits(self):
        ids = ",".join(str((7 * i) % 320) for i in range(60))
        outputs = set()
        best = self.json_of("doctor")["isa"]
        for isa in ("scalar", "avx2", "avx512"):
            out = self.dir / f"{isa}.safetensors"
            self.run_wring("logits", self.model, "--ids", ids, "--hidden", "-o", out, env={"WRING_ISA": isa})
            outputs.add(out.read_bytes())
            if isa == best:
                break
        self.assertEqual(len(outputs), 1)

    def test_tokenize_and_chat_template(self):
        self.assertEqual(self.json_of("tokenize", self.model, "the cat")["decoded"], "the cat")
        (self.dir / "c.jsonl").write_text(json.dumps({"messages": [{"role": "user", "content": "hi"}], "add_generation_prompt": True}) + "\n")
        line = json.loads(self.run_wring("chat-template", self.model, "--file", "c.jsonl").stdout)
        self.assertEqual(line["text"], "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")

    def test_run_is_deterministic(self):
        a = self.json_of("run", self.model, "--ids", "1,2,3", "-n", "8", "--ignore-eos")
        self.assertEqual(len(a["ids"]), 8)
        self.assertEqual(a["ids"], self.json_of("run", self.model, "--ids", "1,2,3", "-n", "8", "--ignore-eos", "--threads", "1")["ids"])
        sampled = ["run", self.model, "--ids", "1,2,3", "-n", "8", "--ignore-eos", "--temperature", "1.5"]
        seeds = [tuple(self.json_of(*sampled, "--seed", s)["ids"]) for s in (1, 1, 2)]
        self.assertEqual(seeds[0], seeds[1])
        self.assertNotEqual(seeds[0], seeds[2])

    def test_convert_there_and_back_keeps_every_bit(self):
        self.run_wring("convert", self.model, "-o", "m.gguf", "--type", "f32")
        self.run_wring("convert", "m.gguf", "-o", "back", "--type", "f32")
        for other in ("m.gguf", "back"):
            self.assertEqual(self.json_of("eval", other, "--against", self.model, "--text", self.text)["kl"]["max"], 0)
            self.assertEqual(self.json_of("tokenize", other, "the cat ran")["ids"], self.json_of("tokenize", self.model, "the cat ran")["ids"])
        self.refused(2, "convert", "m.gguf", "-o", "back", says=["exists"])

    def test_quantize_plans_first(self):
        only_config = self.dir / "config-only"
        only_config.mkdir()
        shutil.copy(self.model / "config.json", only_config)
        plan = self.json_of("quantize", only_config, "--recipe", "q8_0", "--dry-run")
        made = self.json_of("quantize", self.model, "--recipe", "q8_0", "-o", "q8.gguf")
        self.assertEqual([(t["name"], t["asked"], t["used"]) for t in plan["tensors"]], [(t["name"], t["asked"], t["used"]) for t in made["tensors"]])
        self.assertEqual(made["bytes"], (self.dir / "q8.gguf").stat().st_size)
        self.assertTrue(all(t["error"] < 0.02 for t in made["tensors"]))
        # Rows of 64 and 96 do not hold blocks of 256: said in the plan, refused under --strict.
        fallen = self.json_of("quantize", self.model, "--recipe", "q4_k", "-o", "q4.gguf")["tensors"]
        self.assertTrue(any(t["asked"] == "Q4_K" and t["used"] == "Q8_0" and t["reason"] for t in fallen))
        self.refused(4, "quantize", self.model, "--recipe", "q4_k", "--strict", "-o", "strict.gguf")
        self.assertFalse((self.dir / "strict.gguf").exists())

    def test_folders_of_codes_are_models_again(self):
        for recipe, used in (("int4-rtn", "INT4 g32"), ("fp8", "FP8 channel"), ("nvfp4", "NVFP4")):
            group = ["--group", "32"] if recipe == "int4-rtn" else []
            plan = self.json_of("quantize", self.model, "--recipe", recipe, *group, "--dry-run")
            made = self.json_of("quantize", self.model, "--recipe", recipe, *group, "-o", recipe)
            self.assertEqual(plan["types"], made["types"])
            self.assertEqual(made["types"][used]["tensors"], made["quantized_matrices"])
            info = self.json_of("info", recipe)
            self.assertTrue(info["already_quantized"])
            self.assertEqual(len(self.json_of("run", recipe, "--ids", "1,2,3", "-n", "4")["ids"]), 4)
            names = {p.name for p in (self.dir / recipe).iterdir()}
            self.assertLessEqual({"config.json", "model.safetensors", "tokenizer.json", "README.md", "SHA256SUMS"}, names)
            self.refused(2, "quantize", self.model, "--recipe", recipe, "-o", recipe, says=["exists"])
            self.refused(2, "quantize", self.model, "--recipe", recipe, "-o", "m.gguf", says=["folder"])
        made = self.json_of("quantize", self.model, "--recipe", "nvfp4", "--calibration", self.calibration, "-o", "w4a4")
        config = json.loads((self.dir / "w4a4/config.json").read_text())
        self.assertEqual(config["quantization_config"]["config_groups"]["group_0"]["input_activations"]["num_bits"], 4)
        self.refused(4, "study", self.model, "--text", self.text, "-o", "s", "--recipes", "fp8", says=["fp8"])

    def test_imatrix_from_file_and_from_texts_agree(self):
        self.run_wring("imatrix", self.model, "--text", self.calibration, "-o", "i.gguf")
        self.run_wring("quantize", self.model, "--recipe", "q4_k+imatrix", "--imatrix", "i.gguf", "-o", "a.gguf")
        self.run_wring("quantize", self.model, "--recipe", "q4_k+imatrix", "--calibration", self.calibration, "-o", "b.gguf")
        tail = -4096
        self.assertEqual((self.dir / "a.gguf").read_bytes()[tail:], (self.dir / "b.gguf").read_bytes()[tail:])

    def test_experts_are_counted_and_those_that_saw_little_are_listed(self):
        for part in ("config.json", "model.safetensors"):
            shutil.copy(DATA / "arch/exaone_moe" / part, self.model)
        made = self.json_of("imatrix", self.model, "--text", self.calibration, "-o", "i.gguf")
        experts = made["experts"]
        self.assertEqual(experts["count"], 3 * 8)
        self.assertLessEqual(experts["least_tokens"], experts["median_tokens"])
        self.assertEqual(experts["few_tokens"], [])
        (self.dir / "short.txt").write_text("the cat sat on the mat and ran to the station")
        made = self.json_of("imatrix", self.model, "--text", "short.txt", "-o", "short.gguf")
        few = made["experts"]["few_tokens"]
        self.assertEqual(len(few), 24)
        self.assertEqual(sum(e["tokens"] for e in few), made["tokens"] * 3 * 3)
        p = self.run_wring("quantize", self.model, "--recipe", "q4_0+imatrix", "--imatrix", "short.gguf", "-o", "q.gguf")
        self.assertIn("24 of 24 experts saw fewer than 64", p.stderr)
        # Each stack falls back by its own rows; the router is not the plan's business.
        plan = self.json_of("quantize", self.model, "--recipe", "q4_0", "--dry-run")
        used = {t["name"]: t["used"] for t in plan["tensors"]}
        self.assertEqual(used["model.layers.1.mlp.experts.gate_proj.weight"], "Q4_0")
        self.assertEqual(used["model.layers.1.mlp.experts.down_proj.weight"], "BF16")
        self.assertEqual(used["model.layers.1.mlp.gate.weight"], "F32")

    def test_eval_keys(self):
        self.run_wring("quantize", self.model, "--recipe", "q8_0", "-o", "q8.gguf")
        e = self.json_of("eval", "q8.gguf", "--against", self.model, "--text", self.text)
        for key in ("nll", "ppl", "tokens", "delta_nll", "kl", "same_top", "domains", "worst", "compute"):
            self.assertIn(key, e)
        self.assertLessEqual(e["delta_nll"]["low"], e["delta_nll"]["mean"])
        self.assertLess(0, e["kl"]["mean"])
        same = self.json_of("eval", self.model, "--against", self.model, "--text", self.text, "--kl-positions", "all")
        self.assertEqual((same["kl"]["mean"], same["delta_nll"]["mean"], same["same_top"]), (0, 0, 1))
        self.refused(3, "eval", self.model, "--text", self.text, "--context", "513", says=["513", "512"])

    def study(self, *more):
        return ["study", self.model, "-o", "s", "--text", self.text, "--calibration", self.calibration, "--recipes", "q8_0,q4_k+imatrix", *more]

    def test_study_is_resumed_and_reported_again(self):
        # The tiny model's context of 512 holds the preset's documents and its speed runs.
        table = self.json_of(*self.study())["table"]
        self.assertEqual([row["name"] for row in table], ["source", "q8_0", "q4_k+imatrix"])
        report = (self.dir / "s/report.json").read_text()
        start = time.time()
        self.run_wring(*self.study())
        self.assertLess(time.time() - start, 20)
        self.assertEqual((self.dir / "s/report.json").read_text(), report)
        (self.dir / "s/report.json").unlink()
        self.run_wring("report", "s")
        self.assertEqual((self.dir / "s/report.json").read_text(), report)
        self.text.write_text(documents(50, 6))
        self.refused(3, *self.study(), says=["documents"])

    def test_a_killed_study_goes_on_and_comes_to_the_same_rows(self):
        p = subprocess.Popen([WRING, *map(str, self.study())], cwd=self.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.time() + 60
        while time.time() < deadline and not list((self.dir / "s").glob("models/*.gguf")):
            time.sleep(0.005)
        p.send_signal(signal.SIGKILL)
        p.wait()
        rows = self.json_of(*self.study())["table"]
        shutil.move(self.dir / "s", self.dir / "killed")
        whole = self.json_of(*self.study())["table"]
        for a, b in zip(rows, whole, strict=True):
            self.assertEqual((a["name"], a["nll"], a["file_bytes"]), (b["name"], b["nll"], b["file_bytes"]))
        self.assertFalse([f for f in (self.dir / "killed").rglob("*wring-tmp*")])

    def test_a_study_has_a_folder_of_its_own_and_a_model_any_name(self):
        before = sorted(p.name for p in self.model.iterdir())
        for folder in (self.model, self.model / "study"):
            self.refused(2, "study", self.model, "-o", folder, "--text", self.text, "--recipes", "q8_0", says=["inputs"])
        self.assertEqual(sorted(p.name for p in self.model.iterdir()), before)
        odd = os.fsencode(self.dir) + b"/mod\xff"
        os.rename(self.model, odd)
        texts = os.fsencode(self.dir) + b"/text\xff.jsonl"
        os.rename(self.calibration, texts)
        p = subprocess.run([WRING, "quantize", odd, "--recipe", "q4_k+imatrix", "--calibration", texts, "-o", "o.gguf"], cwd=self.dir, capture_output=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        p = subprocess.run([WRING, "study", odd, "-o", "s", "--text", self.text, "--recipes", "q8_0", "--json"], cwd=self.dir, capture_output=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(len(json.loads(p.stdout)["table"]), 2)
        manifest = self.dir / "s/manifest.json"
        manifest.write_text(manifest.read_text().replace('"context": 512', '"context": 511'))
        self.refused(3, "report", "s", says=["manifest"])

    def test_ctrl_c_is_130_and_leaves_no_half_file(self):
        big = self.dir / "big.jsonl"
        big.write_text(documents(0, 3000))
        p = subprocess.Popen([WRING, "quantize", self.model, "--recipe", "q4_k+imatrix", "--calibration", big, "-o", "o.gguf"], cwd=self.dir,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8")
        time.sleep(1)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=30)
        self.assertEqual(p.returncode, 130, err)
        self.assertEqual([f.name for f in self.dir.iterdir() if "o.gguf" in f.name], [])

    def test_a_cut_model_is_refused_before_any_work(self):
        weights = self.model / "model.safetensors"
        data = weights.read_bytes()
        weights.write_bytes(data[:-1000])
        self.refused(3, "quantize", self.model, "--recipe", "q8_0", "-o", "o.gguf", says=["model.safetensors"])
        size = struct.unpack_from("<Q", data)[0]
        nan = bytearray(data)
        nan[8 + size + 4000:8 + size + 4004] = struct.pack("<f", float("nan"))
        weights.write_bytes(nan)
        self.refused(3, "quantize", self.model, "--recipe", "q8_0", "-o", "o.gguf", says=["finite", "lm_head"])
        self.assertFalse((self.dir / "o.gguf").exists())


if __name__ == "__main__":
    unittest.main()
