# Hardware: Two CPU cores, no download, about 1 minute.
# Shows: a trained team is exported; transformers alone runs an agent.
from __future__ import annotations

from transformers import AutoModelForCausalLM, AutoTokenizer

import colearn
from colearn.deploy.export import export_run

TASK = {"name": "str_build", "horizon": 2, "prompt": "compact", "font": "small"}

if __name__ == "__main__":
    result = colearn.train(
        TASK,
        models="embedded-tiny",
        critic="embedded-tiny",
        agents={"*": {"sampling": {"max_tokens": 16}}},
        train={"environment_steps": 200},
    )
    folders = export_run(result.folder, result.folder / "agents")
    print(f"exported: colearn serve {folders['builder_1']} --port 8001")

    tokenizer = AutoTokenizer.from_pretrained(folders["builder_1"])
    model = AutoModelForCausalLM.from_pretrained(folders["builder_1"])
    prompt = [{"role": "user", "content": "What do you build?"}]
    ids = tokenizer.apply_chat_template(
        prompt, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    answer = model.generate(**ids, max_new_tokens=16, do_sample=False)
    print(tokenizer.decode(answer[0, ids["input_ids"].shape[1] :], skip_special_tokens=True))
