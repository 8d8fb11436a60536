import type { Artifact, Attachment } from '#domain/events/catalog-events.js';
import { present } from '../views/present.js';
import type { ModelResidentRow, ModelRow, ModelsAndResidents } from './models.repository.js';

const artifactView = (artifact: Artifact) =>
  present({
    label: artifact.label,
    bytes: artifact.files.reduce((sum, file) => sum + file.bytes, 0),
    files: artifact.files,
    complete: artifact.complete,
    missing: artifact.missing,
    format: artifact.format,
    broken: artifact.broken,
    architecture: artifact.geometry?.architecture,
    parameters: artifact.geometry?.parameters,
    trainedContextTokens: artifact.geometry?.trainedContextTokens,
    experts: artifact.geometry?.expertCount,
  });

const attachmentView = ({ role, label, files, parameters, broken }: Attachment) =>
  present({ role, label, bytes: files.reduce((sum, file) => sum + file.bytes, 0), parameters, broken });

function modelView(row: ModelRow, residents: readonly ModelResidentRow[]) {
  return present({
    modelKey: row.model_key,
    workerId: row.worker_id,
    workerName: row.worker_name,
    aliases: row.aliases,
    kind: row.kind,
    framework: row.framework,
    root: row.root,
    path: row.path,
    smoke: row.smoke,
    marker: row.marker,
    abilities: row.abilities,
    trainedContextTokens: row.trained_context_tokens,
    attachments: (row.attachments as readonly Attachment[]).map(attachmentView),
    artifacts: (row.artifacts as readonly Artifact[]).map(artifactView),
    residents: residents.map((resident) =>
      present({
        residentId: resident.resident_id,
        phase: resident.phase,
        artifact: resident.artifact,
        contextTokens: resident.context_tokens,
      }),
    ),
    lastLoad: row.measured_by
      ? present({
          seconds: row.load_seconds,
          bytes: row.measured_bytes,
          at: row.measured_at,
          fromEvent: row.measured_by,
        })
      : null,
    foundAt: row.found_at,
    changedAt: row.changed_at,
    goneAt: row.gone_at,
  });
}

export type ModelView = ReturnType<typeof modelView>;

export const modelViewer =
  ({ residents }: ModelsAndResidents) =>
  (row: ModelRow): ModelView =>
    modelView(
      row,
      residents.filter((r) => r.model_key === row.model_key && r.worker_id === row.worker_id),
    );
