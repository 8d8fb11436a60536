import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { evidenceOfConfig } from './config-evidence.js';
import { geometryOfConfig } from './config-geometry.js';
import { Described, type Json } from './describing.js';
import { labelOfConfig } from './quantization.js';
import { qualityRank } from './quant.js';
import { factsOfSafetensors } from './safetensors-header.js';

const described = (config: Json, ...names: string[]) =>
  new Described(new Set(['config.json', ...names]), new Map([['config.json', config]]));
const kindOf = (architecture: string, over: Json = {}, ...names: string[]) => {
  const { kind, abilities } = evidenceOfConfig(
    described({ architectures: [architecture], ...over }, ...names),
  );
  return [kind, ...abilities];
};

describe('the header of a safetensors file', () => {
  const tensor = (from: number, to: number, shape = [to - from]) => ({
    dtype: 'U8',
    shape,
    data_offsets: [from, to],
  });

  it('gives tensors with their bytes, experts summed up per block', () => {
    const facts = factsOfSafetensors(
      {
        __metadata__: { format: 'pt' },
        'model.layers.0.mlp.experts.0.up_proj.weight': tensor(0, 10),
        'model.layers.0.mlp.experts.1.up_proj.weight': tensor(10, 30),
        'lm_head.weight': tensor(30, 35),
      },
      35,
    );
    expect(facts).toMatchObject({ mainType: 'U8', values: { format: 'pt' } });
    expect(facts.broken).toBeUndefined();
    expect(facts.tensors).toEqual([
      { name: 'model.layers.0.mlp.experts.*.up_proj.weight', shape: [30], bytes: 30 },
      { name: 'lm_head.weight', shape: [5], bytes: 5 },
    ]);
  });

  it('says what is wrong with a file', () => {
    expect(factsOfSafetensors({ a: tensor(0, 9) }, 5).broken).toMatch(/ends too early.*9.*5/);
    expect(factsOfSafetensors({ a: tensor(0, 4), b: tensor(5, 9) }, 9).broken).toContain('begins at byte 5');
    expect(factsOfSafetensors({ a: { dtype: 'F16' } }, 9).broken).toContain('tensor a');
    expect(factsOfSafetensors([], 0).broken).toContain('no table');
  });

  it('never throws, whatever the header holds', () => {
    fc.assert(fc.property(fc.jsonValue(), fc.nat(), (value, bytes) => void factsOfSafetensors(value, bytes)));
  });
});

describe('what a config shows', () => {
  it('kinds and abilities by the architecture', () => {
    expect(kindOf('LlamaForCausalLM')).toEqual(['chat']);
    expect(kindOf('Qwen2VLForConditionalGeneration', { vision_config: {} })).toEqual(['chat', 'vision']);
    expect(kindOf('MixtralForCausalLM', { num_local_experts: 8 })).toEqual(['chat', 'moe']);
    expect(kindOf('BertModel')).toEqual(['embedding']);
    expect(kindOf('Qwen3ForCausalLM', {}, 'modules.json')).toEqual(['embedding']);
    expect(kindOf('XLMRobertaForSequenceClassification', { id2label: { 0: 'x' } })).toEqual(['rerank']);
    expect(kindOf('BertForSequenceClassification', { id2label: { 0: 'x', 1: 'y' } })).toEqual([undefined]);
    expect(kindOf('WhisperForConditionalGeneration')).toEqual(['speech', 'transcribe']);
    expect(kindOf('SpeechT5ForTextToSpeech')).toEqual(['speech', 'speak']);
    const pipeline = new Described(
      new Set(['model_index.json']),
      new Map([['model_index.json', { _class_name: 'FluxPipeline' }]]),
    );
    expect(evidenceOfConfig(pipeline).kind).toBe('image');
  });

  it('tools and reasoning by the chat template', () => {
    const template = '{% if tools %}<tools>{% endif %}{{ "<think>" }}';
    const of = (chat_template: unknown) =>
      evidenceOfConfig(
        new Described(
          new Set(['config.json']),
          new Map<string, Json>([
            ['config.json', { architectures: ['LlamaForCausalLM'] }],
            ['tokenizer_config.json', { chat_template }],
          ]),
        ),
      ).abilities;
    expect(of(template)).toEqual(['tools', 'reasoning']);
    expect(
      of([
        { name: 'default', template: 'x' },
        { name: 'tool_use', template },
      ]),
    ).toEqual(['tools', 'reasoning']);
    expect(of('{{ messages }}')).toEqual([]);
  });

  it('labels of quantizations, best first below full precision', () => {
    const label = (quantization_config: Json | undefined, type = 'BF16') =>
      labelOfConfig(quantization_config ? { quantization_config } : {}, type);
    expect(label(undefined)).toBe('BF16');
    expect(label({ quant_method: 'awq', bits: 4 })).toBe('AWQ-4BIT');
    expect(label({ quant_method: 'bitsandbytes', load_in_8bit: true })).toBe('BNB-8BIT');
    expect(label({ quant_method: 'fp8' })).toBe('FP8');
    expect(
      label({
        quant_method: 'compressed-tensors',
        config_groups: { a: { weights: { num_bits: 4, type: 'int' } } },
      }),
    ).toBe('CT-4BIT');
    const labels = ['BF16', 'FP8', 'GPTQ-4BIT', 'GPTQ-3BIT'];
    expect([...labels].sort((a, b) => qualityRank(a) - qualityRank(b))).toEqual(labels);
  });

  it('a compressed-tensors folder by what it takes unpacked: packed × 4, FP8 × 2, scales 0', () => {
    const at = (dtype: string, from: number, to: number) => ({
      dtype,
      shape: [to - from],
      data_offsets: [from, to],
    });
    const facts = factsOfSafetensors(
      {
        'model.layers.0.mlp.up_proj.weight_packed': at('I32', 0, 10),
        'model.layers.0.mlp.up_proj.weight_scale': at('F16', 10, 11),
        'model.layers.0.mlp.down_proj.weight': at('F8_E4M3', 11, 13),
        'model.layers.0.input_layernorm.weight': at('BF16', 13, 16),
      },
      16,
    );
    const config = (quant_method: string): Json => ({
      num_hidden_layers: 1,
      quantization_config: { quant_method },
    });
    const bytes = (method: string) =>
      geometryOfConfig(config(method), 'chat', [facts], true)?.blocks[0]?.alwaysBytes;
    expect(bytes('compressed-tensors')).toBe(40 + 4 + 3);
    expect(bytes('gptq')).toBe(16);
  });

  it('a geometry in which only attention grows with the context', () => {
    const config: Json = {
      architectures: ['Qwen3NextForCausalLM'],
      text_config: {
        model_type: 'qwen3_next',
        num_hidden_layers: 4,
        hidden_size: 64,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 32,
        max_position_embeddings: 4096,
        sliding_window: 128,
        layer_types: ['linear_attention', 'sliding_attention', 'full_attention', 'full_attention'],
        linear_num_value_heads: 4,
        linear_value_head_dim: 16,
        linear_num_key_heads: 2,
        linear_key_head_dim: 16,
        linear_conv_kernel_dim: 4,
        num_experts: 8,
        num_experts_per_tok: 2,
      },
    };
    const facts = {
      values: {},
      mainType: 'BF16',
      tensors: [
        { name: 'model.embed_tokens.weight', shape: [10], bytes: 20 },
        { name: 'model.layers.0.mlp.experts.*.up_proj.weight', shape: [100], bytes: 200 },
        { name: 'model.layers.0.input_layernorm.weight', shape: [4], bytes: 8 },
        { name: 'model.visual.blocks.0.norm.weight', shape: [2], bytes: 4 },
      ],
    };
    const geometry = geometryOfConfig(config, 'chat', [facts], true);
    expect(geometry).toMatchObject({
      architecture: 'qwen3_next',
      trainedContextTokens: 4096,
      tokenEmbeddingBytes: 20,
      otherBytes: 4,
      tiedOutput: true,
      expertCount: 8,
      expertUsedCount: 2,
      parameters: 116,
    });
    expect(geometry?.blocks[0]).toMatchObject({ alwaysBytes: 8, expertBytes: 200 });
    expect(geometry?.blocks.map((b) => b.cache.kind)).toEqual([
      'recurrent',
      'window',
      'attention',
      'attention',
    ]);
    expect(geometry?.blocks[2]?.cache).toEqual({
      kind: 'attention',
      kvHeads: 2,
      keyLength: 32,
      valueLength: 32,
    });
  });

  it('survives any JSON as config', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (config) => {
        evidenceOfConfig(described(config));
        geometryOfConfig(config, 'chat', [], false);
        labelOfConfig(config, 'F16');
      }),
    );
  });
});
