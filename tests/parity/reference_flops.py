"""FLOPs of forward and backward passes, counted by PyTorch's FlopCounterMode on models of transformers with explicit
attention: one file per case, with one number, output/flops."""
import torch
from safetensors.torch import save_file
from torch.utils.flop_counter import FlopCounterMode
from transformers import (BartConfig, BartForConditionalGeneration, BertConfig, BertForMaskedLM,
                          BertForSequenceClassification, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM)

D, H, LAYERS, F, V = 48, 4, 3, 112, 97
B, T, S = 3, 20, 14  # in an encoder-decoder: T targets, S sources
EAGER = {"attn_implementation": "eager"}


def count(out, name, model, **batch):
    model.train()
    with FlopCounterMode(display=False) as counter:
        model(**batch).loss.backward()
    flops = torch.tensor(counter.get_total_flops(), dtype=torch.float64)
    save_file({"output/flops": flops}, out / f"{name}.safetensors")


def ids(length):
    return torch.randint(V, (B, length))


def models(out):
    gpt2 = GPT2Config(vocab_size=V, n_positions=64, n_embd=D, n_layer=LAYERS, n_head=H, n_inner=F, **EAGER)
    count(out, "gpt2", GPT2LMHeadModel(gpt2), input_ids=ids(T), labels=ids(T))
    llama = LlamaConfig(vocab_size=V, hidden_size=D, intermediate_size=F, num_hidden_layers=LAYERS, num_attention_heads=H,
                        num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=False, **EAGER)
    count(out, "llama", LlamaForCausalLM(llama), input_ids=ids(T), labels=ids(T))
    bert = BertConfig(vocab_size=V, hidden_size=D, num_hidden_layers=LAYERS, num_attention_heads=H, intermediate_size=F,
                      max_position_embeddings=64, num_labels=5, **EAGER)
    count(out, "bert_masks", BertForMaskedLM(bert), input_ids=ids(T), labels=ids(T))
    count(out, "bert_classes", BertForSequenceClassification(bert), input_ids=ids(T), labels=torch.randint(5, (B,)))
    bart = BartConfig(vocab_size=V, d_model=D, encoder_layers=LAYERS, decoder_layers=2, encoder_attention_heads=H,
                      decoder_attention_heads=H, encoder_ffn_dim=F, decoder_ffn_dim=F, max_position_embeddings=64, **EAGER)
    count(out, "bart", BartForConditionalGeneration(bart), input_ids=ids(S), decoder_input_ids=ids(T), labels=ids(T))


CASES = [models]
