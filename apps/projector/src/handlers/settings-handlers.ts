import { levelOf } from '#domain/settings/settings.js';
import { type Handler, type Handlers, positionOf, streamId } from './handler.js';

/** One row per scope and name. What is taken back leaves a row that says by whom. */
const changed: Handler<'SettingsChanged'> = {
  touches: () => undefined,
  apply: (views, recorded) => {
    const scope = streamId(recorded);
    for (const [name, value] of Object.entries(recorded.event.data.patch)) {
      views.settings.put({
        scope,
        name,
        level: levelOf(scope),
        value,
        is_set: value !== null,
        by_whom: recorded.event.data.by,
        event_id: recorded.id,
        changed_at: recorded.metadata.at,
        position: positionOf(recorded),
      });
    }
  },
};

export const settingsHandlers = { SettingsChanged: changed } satisfies Handlers;
