import type { Ability } from '#domain/events/catalog-events.js';
import type { Evidence } from './config-evidence.js';
import type { FileFacts } from './file-facts.js';
import { kindOf } from './geometry-of.js';
import { HeaderKeys, isEncoder } from './header-keys.js';

/** Diffusion models that are kept as GGUF: they have no blocks and no tokens that we count. */
const PICTURES = new Set(
  'flux sd1 sd3 sdxl aura hidream hyvid ltxv cosmos lumina2 qwen_image wan z_image chroma pig'.split(' '),
);
const SPEECH = new Set('wavtokenizer-dec parler-tts kokoro dia csm orpheus-tts whisper'.split(' '));

export const isPictureArchitecture = (architecture: string): boolean => PICTURES.has(architecture);
export const isSpeechArchitecture = (architecture: string): boolean => SPEECH.has(architecture);

/** Of a GGUF file and what reads pictures or sound for it. */
export function evidenceOfHeader(facts: FileFacts, projectors: readonly FileFacts[]): Evidence {
  const keys = new HeaderKeys(facts.values);
  const { architecture } = keys;
  const by = `the header names ${architecture === '' ? 'no architecture' : architecture}`;
  if (isPictureArchitecture(architecture)) {
    return { kind: 'image', certain: true, abilities: [], reasons: [by] };
  }
  if (isSpeechArchitecture(architecture)) {
    const ability: Ability = architecture === 'whisper' ? 'transcribe' : 'speak';
    return { kind: 'speech', certain: true, abilities: [ability], reasons: [by] };
  }
  const kind = kindOf(keys, facts.tensors);
  const pooling = keys.number('pooling_type');
  const reasons = [pooling === undefined ? by : `${by} and pooling ${pooling}`];
  const abilities: Ability[] = [];
  if (kind === 'chat') {
    const { template } = facts;
    if (template?.tools === true) abilities.push('tools');
    if (template?.reasoning === true) abilities.push('reasoning');
    reasons.push(
      template === undefined
        ? 'the header has no chat template'
        : `its chat template ${template.tools ? 'takes tools' : 'takes no tools'} and ${template.reasoning ? 'keeps reasoning apart' : 'knows no reasoning'}`,
    );
  }
  const experts = keys.number('expert_count') ?? 0;
  if (
    experts > 1 &&
    facts.tensors.some((t) => t.name.includes('_exps') || /ffn_(?:gate|up|down)\.\d/.test(t.name))
  ) {
    abilities.push('moe');
    reasons.push(`the header has ${experts} experts`);
  }
  for (const projector of projectors) {
    for (const ability of sensesOf(projector)) {
      if (abilities.includes(ability)) continue;
      abilities.push(ability);
      reasons.push(`a projector for ${ability} lies beside it`);
    }
  }
  // A decoder without a pooling key may have been trained to embed: its header does not deny it.
  return { kind, certain: pooling !== undefined || isEncoder(architecture), abilities, reasons };
}

function sensesOf({ values }: FileFacts): readonly Ability[] {
  const audio = values['clip.has_audio_encoder'] === true;
  // Files from before there were others say nothing, and see.
  const vision =
    values['clip.has_vision_encoder'] !== false && (values['clip.has_vision_encoder'] === true || !audio);
  return [...(vision ? (['vision'] as const) : []), ...(audio ? (['audio'] as const) : [])];
}
