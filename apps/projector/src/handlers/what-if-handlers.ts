import { type Handler, type Handlers, positionOf } from './handler.js';

/** The first summary of a day stands, whoever else wrote one. */
const summarised: Handler<'WhatIfSummarised'> = {
  repeatable: true,
  touches: (views, { event }) => views.what_if_nights.want(event.data.day),
  apply: (views, recorded) => {
    const { day, from, to, leftOut, asItWas, apiId, ...rest } = recorded.event.data;
    if (views.what_if_nights.get(day)) return;
    const { calls, decisions, identical, really, changes, least, sentence } = rest;
    views.what_if_nights.put({
      day,
      from_at: from,
      to_at: to,
      calls,
      left_out: leftOut,
      decisions,
      identical,
      really,
      as_it_was: asItWas,
      changes,
      least,
      sentence,
      api_id: apiId,
      position: positionOf(recorded),
    });
  },
};

export const whatIfHandlers = { WhatIfSummarised: summarised } satisfies Handlers;
