import type { Artifact, FoundModel } from '#domain/events/catalog-events.js';
import { modelKey } from '#domain/ids.js';
import { attachmentOf, type LooseAttachment, peftAdapter } from './attachments.js';
import { type Evidence, evidenceOfConfig } from './config-evidence.js';
import { trainedContextOf } from './config-geometry.js';
import { anyOf } from './chat-template.js';
import { type Described, type Json, textOf } from './describing.js';
import { MARKER } from './file-names.js';
import { isAdapterWeights, pickledArtifact, safetensorsArtifacts } from './folder-artifacts.js';
import { ggufArtifacts, type MadeArtifact, roleOf } from './gguf-artifacts.js';
import { evidenceOfHeader } from './header-evidence.js';
import { HeaderKeys } from './header-keys.js';
import { settle } from './marker.js';
import { markerOf } from './marker-files.js';
import { qualityRank, readName } from './quant.js';
import type { ModelFolder } from './model-folders.js';
import type { ReadFile } from './weight-file.js';

export interface ScannedModel {
  readonly model: FoundModel;
  /** Absolute paths of each artifact's files, the first shard first. Never in an event. */
  readonly files: ReadonlyMap<string, readonly string[]>;
  /** Absolute paths of what is attached, by label. */
  readonly attached: ReadonlyMap<string, string>;
  /** A file of it was written a moment ago and is not whole yet: what is said here will change. */
  readonly settling: boolean;
  /** The marker that must be written, since the one that is there says what the files deny. */
  readonly rederived?: { readonly marker: Json; readonly beside: Json | undefined };
}

/** What a folder holds: a model, and adapters whose base is to be looked for among all models. */
export interface Assembled {
  readonly scanned?: ScannedModel;
  readonly loose: readonly LooseAttachment[];
}

/** What one folder was read as. */
export interface FolderContent {
  readonly gguf: readonly ReadFile[];
  readonly safetensors: readonly ReadFile[];
  readonly described: Described;
  /** From Berth's own folder, for folders that cannot be written. */
  readonly sidecar?: Json;
}

/** A broken file that was changed within this is taken to be in the making: copied, or still being written. */
const SETTLING_MS = 1000;

/** One model from the files of its folder: shards folded into one artifact, artifacts best first. */
export function assemble(folder: ModelFolder, content: FolderContent, nowMs: number): Assembled {
  const { described } = content;
  const roles = content.gguf.map((one) => ({ one, role: roleOf(one) }));
  const of = (role: ReturnType<typeof roleOf>) => roles.filter((r) => r.role === role).map((r) => r.one);
  const projectors = of('projector');
  const peft = content.safetensors.filter(({ file }) => isAdapterWeights(file.name));
  const adapters: readonly LooseAttachment[] = [
    ...of('adapter').map((one) => attachmentOf('adapter', one)),
    ...peft.map((one) => peftAdapter(one, described)),
  ];

  const gguf = ggufArtifacts(of('model'));
  const fromConfig = evidenceOfConfig(described);
  const unserved = fromConfig.kind === undefined ? fromConfig.reasons[0] : undefined;
  const marker = markerOf(described.json(MARKER), content.sidecar);
  const said = marker?.said;
  const safetensors = safetensorsArtifacts(content.safetensors, described, fromConfig.kind, unserved);
  const pickled = pickledArtifact(folder.files);
  const made: readonly MadeArtifact[] = [
    ...gguf,
    ...safetensors,
    ...(pickled === undefined ? [] : [pickled]),
  ];
  if (made.length === 0 || (adapters.length > 0 && gguf.length + safetensors.length === 0)) {
    const base = textOf(said?.['base']);
    return { loose: adapters.map((a) => (base === undefined ? a : { ...a, bases: [base, ...a.bases] })) };
  }

  const best = inOrder(made);
  const header =
    gguf.length === 0 ? undefined : (best.find((m) => m.artifact.geometry)?.first ?? gguf[0]?.first);
  const evidence: Evidence =
    header === undefined
      ? fromConfig
      : withTemplate(
          evidenceOfHeader(
            header.facts,
            projectors.map((p) => p.facts),
          ),
          folder,
        );
  const trained =
    header === undefined
      ? trainedOfConfig(described)
      : new HeaderKeys(header.facts.values).number('context_length');
  const template = header === undefined ? described.template : (header.facts.template ?? folder.template);
  const settled = settle(
    {
      evidence,
      hasTemplate: template !== undefined,
      ...(trained === undefined ? {} : { trainedContextTokens: trained }),
    },
    said,
    marker?.source ?? 'beside',
  );
  const kind = settled.kind ?? 'chat';
  const artifacts = best.map(({ artifact }): Artifact =>
    artifact.geometry === undefined ? artifact : { ...artifact, geometry: { ...artifact.geometry, kind } },
  );
  const attachments = [...projectors.map((one) => attachmentOf('projector', one)), ...adapters];
  const smoke = gguf.some(({ first }) => first?.facts.values['berth.preset'] === 'smoke');
  return {
    loose: [],
    scanned: {
      model: {
        modelKey: modelKey(folder.key),
        aliases: [...new Set([...folder.aliases, ...settled.aliases])],
        root: folder.root,
        path: folder.path,
        kind,
        framework: artifacts[0]?.format ?? 'gguf',
        artifacts,
        ...(settled.abilities.length === 0 ? {} : { abilities: settled.abilities }),
        ...(settled.trainedContextTokens === undefined
          ? {}
          : { trainedContextTokens: settled.trainedContextTokens }),
        ...(attachments.length === 0 ? {} : { attachments: attachments.map((a) => a.attachment) }),
        ...(smoke ? { smoke } : {}),
        marker: settled.marker,
      },
      files: new Map(best.map((m) => [m.artifact.label, m.paths])),
      attached: new Map(attachments.map((a) => [a.attachment.label, a.path])),
      settling: [...content.gguf, ...content.safetensors].some(
        ({ file, facts }) => facts.broken !== undefined && Math.abs(nowMs - file.modifiedMs) < SETTLING_MS,
      ),
      ...(settled.rederived === undefined
        ? {}
        : { rederived: { marker: settled.rederived, beside: described.json(MARKER) } }),
    },
  };
}

/** Ollama keeps the template beside the weights, and it holds there. */
function withTemplate(evidence: Evidence, { template }: ModelFolder): Evidence {
  if (template === undefined || evidence.kind !== 'chat') return evidence;
  const all = anyOf([
    template,
    { tools: evidence.abilities.includes('tools'), reasoning: evidence.abilities.includes('reasoning') },
  ]);
  const others = evidence.abilities.filter((a) => a !== 'tools' && a !== 'reasoning');
  return {
    ...evidence,
    abilities: [
      ...others,
      ...(all?.tools === true ? (['tools'] as const) : []),
      ...(all?.reasoning === true ? (['reasoning'] as const) : []),
    ],
    reasons: [...evidence.reasons, 'Ollama keeps a template for it'],
  };
}

function trainedOfConfig(described: Described): number | undefined {
  const config = described.json('config.json');
  return config === undefined ? undefined : trainedContextOf(config);
}

/** What can be loaded comes first, then by precision, then GGUF, then the larger, then by name. */
function inOrder(made: readonly MadeArtifact[]): readonly MadeArtifact[] {
  const rank = ({ artifact }: MadeArtifact): readonly (number | string)[] => {
    const usable = artifact.complete && artifact.broken === undefined;
    const label = readName(artifact.label).label ?? artifact.label;
    const bytes = artifact.files.reduce((total, file) => total + file.bytes, 0);
    return [
      usable ? 0 : 1,
      qualityRank(label),
      artifact.format === undefined ? 0 : 1,
      -bytes,
      artifact.label,
    ];
  };
  const order = new Map(made.map((m) => [m, rank(m)]));
  return [...made].sort((a, b) => compare(order.get(a) ?? [], order.get(b) ?? []));
}

function compare(a: readonly (number | string)[], b: readonly (number | string)[]): number {
  for (const [i, x] of a.entries()) {
    const y = b[i] ?? 0;
    if (x !== y) return x < y ? -1 : 1;
  }
  return 0;
}
