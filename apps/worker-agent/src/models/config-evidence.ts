import type { Ability } from '#domain/events/catalog-events.js';
import type { ModelKind } from '#domain/placement-terms.js';
import { expertCountOf } from './config-geometry.js';
import { countOf, type Described, isObject, textOf, type Json } from './describing.js';

/** What the files show of a model, and by what. */
export interface Evidence {
  /** Undefined: they show something that no endpoint serves. */
  readonly kind?: ModelKind;
  /** True when another kind would contradict the files; false when it is only the likeliest. */
  readonly certain: boolean;
  readonly abilities: readonly Ability[];
  /** One sentence for each fact, with the file that it is read from. */
  readonly reasons: readonly string[];
}

const TRANSCRIBES =
  /Whisper|SpeechSeq2Seq|ForCTC|ForRNNT|ForTDT|Moonshine|Parakeet|Wav2Vec2|SeamlessM4T|Speech2Text/;
const SPEAKS = /TextToSpeech|TextToWaveform|Vits|Bark|Parler|Kokoro|CsmFor|DiaFor|MusicGen|Chatterbox/i;
const SEES = /CLIPModel|SiglipModel|Siglip2Model/;

/** Of a folder that transformers, diffusers or sentence-transformers load. */
export function evidenceOfConfig(described: Described): Evidence {
  const index = described.json('model_index.json');
  if (index !== undefined) return ofPipeline(index);
  const config = described.json('config.json');
  if (config === undefined) {
    return {
      kind: 'chat',
      certain: false,
      abilities: [],
      reasons: ['no config.json lies beside the weights'],
    };
  }
  const architectures: unknown = config['architectures'];
  const architecture =
    (Array.isArray(architectures) ? textOf((architectures as readonly unknown[])[0]) : undefined) ??
    textOf(config['model_type']) ??
    '';
  const by = `config.json names ${architecture === '' ? 'no architecture' : architecture}`;
  const plain = (kind: ModelKind, abilities: readonly Ability[], reason = by): Evidence => ({
    kind,
    certain: architecture !== '',
    abilities,
    reasons: [reason],
  });
  if (TRANSCRIBES.test(architecture)) return plain('speech', ['transcribe']);
  if (SPEAKS.test(architecture)) return plain('speech', ['speak']);
  if (/ForSequenceClassification$/.test(architecture)) return ofClassifier(config, by);
  if (described.has('modules.json') || described.has('config_sentence_transformers.json')) {
    return plain(
      'embedding',
      SEES.test(architecture) ? ['vision'] : [],
      'it is laid out for sentence-transformers',
    );
  }
  if (SEES.test(architecture)) return plain('embedding', ['vision']);
  if (
    /ForCausalLM|LMHeadModel|ForConditionalGeneration|ForImageTextToText|ForMultimodal/.test(architecture)
  ) {
    return ofChat(config, described, by, true);
  }
  if (/(?:Model|ForMaskedLM|Encoder)$/.test(architecture)) return plain('embedding', []);
  return ofChat(config, described, by, false);
}

function ofPipeline(index: Json): Evidence {
  const name = textOf(index['_class_name']) ?? 'a pipeline';
  const reasons = [`model_index.json names ${name}`];
  return /Audio|Music|Speech/i.test(name)
    ? { kind: 'speech', certain: true, abilities: ['speak'], reasons }
    : { kind: 'image', certain: true, abilities: [], reasons };
}

/** A reranker is a classifier with one score. */
function ofClassifier(config: Json, by: string): Evidence {
  const labels = isObject(config['id2label'])
    ? Object.keys(config['id2label']).length
    : countOf(config['num_labels']);
  if (labels === 1) {
    return { kind: 'rerank', certain: true, abilities: [], reasons: [`${by}, with one score`] };
  }
  const many = labels ?? 2;
  return {
    certain: true,
    abilities: [],
    reasons: [`${by}, a classifier with ${many} labels, which no endpoint serves`],
  };
}

function ofChat(config: Json, described: Described, by: string, certain: boolean): Evidence {
  const abilities: Ability[] = [];
  const reasons = [by];
  const thinker = isObject(config['thinker_config']) ? config['thinker_config'] : config;
  if (isObject(thinker['vision_config']) || isObject(config['visual'])) {
    abilities.push('vision');
    reasons.push('config.json has a vision part');
  }
  if (isObject(thinker['audio_config']) || isObject(config['audio_processor'])) {
    abilities.push('audio');
    reasons.push('config.json has an audio part');
  }
  const { template } = described;
  if (template?.tools === true) abilities.push('tools');
  if (template?.reasoning === true) abilities.push('reasoning');
  reasons.push(
    template === undefined
      ? 'no chat template lies beside the weights'
      : `its chat template ${template.tools ? 'takes tools' : 'takes no tools'} and ${template.reasoning ? 'keeps reasoning apart' : 'knows no reasoning'}`,
  );
  const experts = expertCountOf(config);
  if (experts > 1) {
    abilities.push('moe');
    reasons.push(`config.json has ${experts} experts`);
  }
  return { kind: 'chat', certain, abilities, reasons };
}
