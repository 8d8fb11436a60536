import type { Views } from '../rows/views.js';
import { type Handler, type Handlers, positionOf, type RecordedOf, streamId } from './handler.js';

type ModelRecorded =
  | RecordedOf<'ModelFound'>
  | RecordedOf<'ModelChanged'>
  | RecordedOf<'ModelGone'>
  | RecordedOf<'WeightsHashed'>;

const touches = (views: Views, recorded: ModelRecorded): void =>
  views.models.want(streamId(recorded), recorded.event.data.modelKey);

function foundOrChanged(views: Views, recorded: RecordedOf<'ModelFound'> | RecordedOf<'ModelChanged'>): void {
  const data = recorded.event.data;
  const at = recorded.metadata.at;
  const before = views.models.get(streamId(recorded), data.modelKey);
  views.models.put({
    worker_id: streamId(recorded),
    model_key: data.modelKey,
    aliases: [...data.aliases],
    root: data.root,
    path: data.path,
    kind: data.kind,
    framework: data.framework,
    smoke: data.smoke ?? false,
    marker: data.marker ?? null,
    artifacts: data.artifacts,
    hashes: before?.hashes ?? {},
    found_at: before?.found_at ?? at,
    changed_at: at,
    gone_at: null,
    position: before?.position ?? positionOf(recorded),
    abilities: [...(data.abilities ?? [])],
    trained_context_tokens: data.trainedContextTokens ?? null,
    attachments: data.attachments ?? [],
  });
}

const found: Handler<'ModelFound'> = { touches, apply: foundOrChanged };
const changed: Handler<'ModelChanged'> = { touches, apply: foundOrChanged };

const gone: Handler<'ModelGone'> = {
  touches,
  apply: (views, recorded) =>
    views.models.patch([streamId(recorded), recorded.event.data.modelKey], {
      gone_at: recorded.metadata.at,
      changed_at: recorded.metadata.at,
    }),
};

const hashed: Handler<'WeightsHashed'> = {
  touches,
  apply: (views, recorded) => {
    const { modelKey, file, bytes, sha256 } = recorded.event.data;
    const row = views.models.get(streamId(recorded), modelKey);
    if (row) views.models.put({ ...row, hashes: { ...(row.hashes as object), [file]: { bytes, sha256 } } });
  },
};

export const catalogHandlers = {
  ModelFound: found,
  ModelChanged: changed,
  ModelGone: gone,
  WeightsHashed: hashed,
} satisfies Handlers;
