"""The official OpenAI client, pointed at `pallas ue`, while its user drives past gNBs.

`openai_client_test.py fake` needs no model, `openai_client_test.py llama` uses the shipped one.
"""

import json
import subprocess
import sys
import unittest

import openai

from support import TRACE, ClusterTest, http

ENGINE = "fake"
CELLS = ["cell_-1_4", "cell_-1_3", "cell_-1_2", "cell_-1_1"]
PROMPT = "Tell me a long story about a river, its bridges and the people who cross them. " * 6
REQUEST = {
    "model": "any",
    "messages": [{"role": "user", "content": PROMPT}],
    "temperature": 0.8,
    "seed": 42,
    "max_tokens": 560,
}
OURS = {"ignore_eos": True, "consistency": "exact"}


class OpenAiClient(ClusterTest):
    def setUp(self):
        self.gnbs = self.cluster(CELLS, engine=ENGINE, flags=["--goodput-mbps=50"])
        models = json.loads(http("GET", self.gnbs.http["gnb-a"], "/v1/models")[1])
        self.request = dict(REQUEST, model=models["data"][0]["id"])

    def client(self, port):
        return openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", timeout=120, max_retries=0)

    def reference(self, **changes):
        """The whole answer of one gNB, without a handover."""
        request = dict(self.request, **changes)
        return self.client(self.gnbs.http["gnb-d"]).chat.completions.create(**request, extra_body=OURS)

    def test_a_stream_over_three_handovers_is_one_ordinary_stream(self):
        ue = self.gnbs.start_ue("ue-2", CELLS[0])
        stream = self.client(ue).chat.completions.create(
            **self.request, stream=True, stream_options={"include_usage": True}, extra_body=dict(OURS, max_token_rate=25)
        )
        roles, finishes, usages, text, drive = [], [], [], "", None
        for chunk in stream:
            if chunk.usage is not None:
                usages.append(chunk.usage)
            for choice in chunk.choices:
                if choice.delta.role:
                    roles.append(choice.delta.role)
                if choice.finish_reason:
                    finishes.append(choice.finish_reason)
                text += choice.delta.content or ""
            if drive is None and text:
                drive = self.gnbs.start_drive("ue-2", ue, f"--trip={TRACE}", "--vehicle=2", "--from=98", "--to=119", "--hz=10")
        self.assertEqual(drive.process.wait(timeout=60), 0, drive.read(drive.err))

        reports = self.gnbs.reports()
        self.assertEqual(len(reports), 3, reports)
        for report in reports:
            self.assertTrue(report["prepared"] and report["exact"], report)
        self.assertEqual(roles, ["assistant"])
        self.assertEqual(finishes, ["length"])
        self.assertEqual([u.completion_tokens for u in usages], [560])
        reference = self.reference()
        self.assertEqual(text, reference.choices[0].message.content)
        self.assertEqual(usages[0].prompt_tokens, reference.usage.prompt_tokens)

    def test_the_raw_stream_ends_with_one_done(self):
        ue = self.gnbs.start_ue("ue-2", CELLS[0])
        body = dict(self.request, max_tokens=20, stream=True)
        status, text = http("POST", ue, "/v1/chat/completions", body)
        self.assertEqual(status, 200)
        self.assertEqual(text.count("data: [DONE]"), 1)
        self.assertTrue(text.rstrip().endswith("data: [DONE]"))
        self.assertNotIn('"usage"', text.replace('"usage":null', ""))

    def test_a_whole_answer_over_handovers_is_the_reference(self):
        ue = self.gnbs.start_ue("ue-2", CELLS[0])
        drive = self.gnbs.start_drive("ue-2", ue, f"--trip={TRACE}", "--vehicle=2", "--from=101", "--to=112", "--hz=10")
        answer = self.client(ue).chat.completions.create(
            **dict(self.request, max_tokens=300), extra_body=dict(OURS, max_token_rate=25)
        )
        drive.process.wait(timeout=60)
        self.assertGreaterEqual(len(self.gnbs.reports()), 2)
        reference = self.reference(max_tokens=300)
        self.assertEqual(answer.choices[0].message.content, reference.choices[0].message.content)
        self.assertEqual(answer.choices[0].finish_reason, "length")
        self.assertEqual(answer.usage.completion_tokens, 300)

    def test_an_error_is_an_openai_error(self):
        ue = self.gnbs.start_ue("ue-2", CELLS[0])
        with self.assertRaises(openai.BadRequestError) as refused:
            self.client(ue).chat.completions.create(**dict(self.request, n=2))
        self.assertIn("n", str(refused.exception))
        with self.assertRaises(openai.NotFoundError):
            self.client(ue).chat.completions.create(**dict(self.request, model="no-such-model"))

    def test_curl_at_a_gnb_works_streaming_and_not(self):
        url = f"http://127.0.0.1:{self.gnbs.http['gnb-b']}/v1/chat/completions"
        for stream in (False, True):
            body = json.dumps(dict(self.request, max_tokens=8, stream=stream))
            done = subprocess.run(
                ["curl", "-sS", "-N", "--max-time", "60", url, "-d", body], capture_output=True, text=True, check=True
            )
            if stream:
                self.assertEqual(done.stdout.count("data: [DONE]"), 1)
                self.assertNotIn("pallas", done.stdout)
            else:
                self.assertEqual(json.loads(done.stdout)["usage"]["completion_tokens"], 8)


if __name__ == "__main__":
    ENGINE = sys.argv.pop(1)
    unittest.main()
