// A click, Enter or Space on a word, or on "Put all back", goes to the app with the word's position (or none).
function send(event) {
  const target = event.target.closest('[data-word]');
  if (!target || (event.type === 'keydown' && !['Enter', ' '].includes(event.key))) return;
  event.preventDefault();
  trigger('word', { word: target.dataset.word === '' ? null : Number(target.dataset.word) });
}
element.addEventListener('click', send);
element.addEventListener('keydown', send);
