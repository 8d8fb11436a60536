import { type Place, placeOf } from './places.js';

class Router {
  place = $state.raw<Place>(placeOf(location.hash));

  constructor() {
    addEventListener('hashchange', () => (this.place = placeOf(location.hash)));
  }
}

export const router = new Router();
