// A page of a report of causes: its title, its summary and its cards.

import {$, data} from '../page.js';
import {causeCards} from './cause_cards.js';

const LONG_TITLE = 90;

$('kind').textContent = data.kind;
$('run').textContent = data.name;
$('title').textContent = data.title;
$('title').classList.toggle('long', data.title.length > LONG_TITLE);
$('summary').textContent = data.summary;
$('cards').append(...causeCards(data));
