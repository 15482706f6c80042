// The address says what is shown: #VIEW?name=value&… It is behind the #, so no server sees it.

/** {view, values}: the view's name and its values; '' where the address names none. */
export function readAddress() {
  const [view, ...rest] = location.hash.slice(1).split('?');
  return {view, values: new URLSearchParams(rest.join('?'))};
}

/** The address of a view with `values`, a list of [name, value]; values that are '', null or undefined are left out. */
export function addressOf(view, values) {
  const kept = values.filter(([, value]) => value !== '' && value !== null && value !== undefined);
  const text = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  return `#${view}${text ? `?${text}` : ''}`;
}

/** Makes this the address, without a new entry in the browser's history. */
export const setAddress = (view, values) => history.replaceState(null, '', addressOf(view, values));
