"""Says how tokenizers and transformers read directories that the zoo has written:

    check_tokenizers.py DIRECTORY... <TEXTS        TEXTS: a list in JSON

Prints {directory: {"ids": [[…]], "auto_ids": [[…]], "decoded": […], "pad": …}}.
"""

import json
import sys

from tokenizers import Tokenizer
from transformers import AutoTokenizer

texts = json.load(sys.stdin)
result = {}
for directory in sys.argv[1:]:
    tokenizer = Tokenizer.from_file(f"{directory}/tokenizer.json")
    auto = AutoTokenizer.from_pretrained(directory)
    ids = [each.ids for each in tokenizer.encode_batch(texts)]
    result[directory] = {"ids": ids, "auto_ids": auto(texts)["input_ids"], "decoded": tokenizer.decode_batch(ids),
                         "pad": auto.pad_token_id}
print(json.dumps(result))
