import { h } from './dom.js';
import { count } from './format.js';
import { read, send } from './stream.js';

/** A button that asks whether to stop a workload, or to let it run again; `changed` is called after it was done. */
export function switchButton(workload, changed) {
  const { namespace, name, stoppable: kind, pods } = workload;
  return h(
    'button',
    {
      type: 'button',
      class: 'plain switch',
      'data-key': `switch/${kind}/${namespace}/${name}`,
      'aria-label': `${pods === 0 ? 'Resume' : 'Stop'} ${namespace}/${name}`,
      click: () => void open({ kind, namespace, name }, changed),
    },
    pods === 0 ? 'Resume…' : 'Stop…',
  );
}

async function open(workload, changed) {
  const { kind, namespace, name } = workload;
  const what = `${kind.replace(/\..*$/u, '')} ${namespace}/${name}`;
  const title = h('h2', { id: 'switch-title' }, what);
  const words = h('div', { role: 'status' }, h('p', { class: 'quiet' }, 'Asking the API server…'));
  const buttons = h('div', { class: 'buttons' });
  const dialog = h('dialog', { id: 'switch', 'aria-labelledby': 'switch-title' }, title, words, buttons);
  const close = h('button', { type: 'button', class: 'plain wide', click: () => dialog.close() }, 'Cancel');
  const say = (text, ...actions) => {
    words.replaceChildren(...[text].flat().map((part) => h('p', {}, part)));
    buttons.replaceChildren(...actions, close);
  };
  dialog.addEventListener('close', () => dialog.remove());
  buttons.append(close);
  document.body.append(dialog);
  dialog.showModal();
  const query = new window.URLSearchParams(workload);
  const state = await read(`api/workload?${query}`).catch((error) => ({ ok: false, reason: error.message }));
  if (state === null || !state.ok) return say(`Nothing can be done: ${state?.reason ?? 'you may not see it'}.`);
  const isStopped = !state.isStopped;
  const verb = isStopped ? 'Stop' : 'Resume';
  title.textContent = `${verb} ${what}?`;
  const effect = effectOf(state);
  if (state.refusal !== undefined) return say([...effect, `You cannot do this: ${state.refusal}.`]);
  const act = async (event) => {
    event.target.disabled = true;
    const answer = await send('api/workload/switch', { ...workload, isStopped }).catch((error) => ({
      ok: false,
      reason: error.message,
    }));
    close.textContent = 'Close';
    if (answer.ok) {
      say(isStopped ? 'It stops: its pods end now.' : 'It runs again: its pods are made now, and wait for room.');
      changed();
    } else say(`It was not changed: ${answer.reason}.`);
  };
  say(effect, h('button', { type: 'button', class: 'plain wide act', click: act }, verb));
  buttons.querySelector('.act')?.focus();
}

/** What the button of the dialog does, in sentences. */
function effectOf({ way, isStopped, replicas }) {
  const pods = way === 'scale' ? `${count(replicas, 'replica')}` : 'its pods';
  if (isStopped)
    return [
      way === 'scale' ? `It is scaled to ${pods}.` : 'It is no longer suspended, and its pods are made anew.',
      'Quota and scheduler decide as for a new workload: it may be refused, or wait for room.',
    ];
  return [
    way === 'scale' ? `It is scaled from ${pods} to 0; the number is kept for a resume.` : 'It is suspended.',
    'Its pods end: what their programs did not save is lost. Their quota and GPUs are free once they are gone.',
    'It stays stopped until somebody resumes it, here or with kubectl.',
  ];
}
