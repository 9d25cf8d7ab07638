// A click, Enter or Space on a word, or on "Put all back", goes to the app with the word's position (or none), and which answer it is of.
function send(event) {
  const target = event.target.closest('[data-word]');
  if (!target || (event.type === 'keydown' && !['Enter', ' '].includes(event.key))) return;
  event.preventDefault();
  const word = target.dataset.word === '' ? null : Number(target.dataset.word);
  trigger('word', { word, answer: target.closest('.answer').dataset.answer });
}
element.addEventListener('click', send);
element.addEventListener('keydown', send);
