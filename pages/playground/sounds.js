// Recordings in the browser: samples of files and of the microphone, and files of samples.

const RATE = 16000;  // samples per second of what the browser decodes
const HEADER = 44;   // bytes before the samples of a WAV file

const textAt = (bytes, at) => String.fromCharCode(...new Uint8Array(bytes).subarray(at, at + 4));

/** The media type of bytes that the server reads as they are: WAV or FLAC; '' for others. */
export function typeOf(bytes) {
  if (textAt(bytes, 0) === 'fLaC') return 'audio/flac';
  return ['RIFF', 'RIFX', 'RF64'].includes(textAt(bytes, 0)) && textAt(bytes, 8) === 'WAVE' ? 'audio/wav' : '';
}

/** {samples, rate} of a file of any format that the browser knows, the mean of its channels; null for another file. */
export async function decoded(bytes) {
  let sound;
  try {
    sound = await new OfflineAudioContext(1, 1, RATE).decodeAudioData(bytes.slice(0));
  } catch {
    return null;
  }
  const channels = Array.from({length: sound.numberOfChannels}, (_, i) => sound.getChannelData(i));
  const samples = channels[0].map((_, t) => channels.reduce((sum, channel) => sum + channel[t], 0) / channels.length);
  return {samples, rate: sound.sampleRate};
}

/** The bytes of a WAV file of 16 bits in one channel. */
export function wavOf({samples, rate}) {
  const bytes = new ArrayBuffer(HEADER + 2 * samples.length), view = new DataView(bytes), size = 2 * samples.length;
  const put = (at, text) => [...text].forEach((letter, i) => view.setUint8(at + i, letter.charCodeAt(0)));
  put(0, 'RIFF');
  view.setUint32(4, HEADER - 8 + size, true);
  put(8, 'WAVEfmt ');
  // The size of what follows, integers, one channel, the rate, bytes of a second and of a sample, bits.
  for (const [at, value, width] of [[16, 16, 4], [20, 1, 2], [22, 1, 2], [24, rate, 4], [28, 2 * rate, 4], [32, 2, 2], [34, 16, 2]])
    width === 4 ? view.setUint32(at, value, true) : view.setUint16(at, value, true);
  put(36, 'data');
  view.setUint32(40, size, true);
  samples.forEach((sample, t) => view.setInt16(HEADER + 2 * t, Math.round(32767 * Math.min(1, Math.max(-1, sample))), true));
  return bytes;
}

/** Bytes as a data URI, and back: null if it is none of a WAV or FLAC file. */
export function dataUriOf(bytes) {
  const letters = Array.from(new Uint8Array(bytes), byte => String.fromCharCode(byte));
  return `data:${typeOf(bytes) || 'audio/wav'};base64,${btoa(letters.join(''))}`;
}
export function bytesOf(uri) {
  const [, text] = /^data:audio\/(?:wav|flac);base64,([A-Za-z0-9+/=]+)$/.exec(uri) ?? [];
  try {
    return text ? Uint8Array.from(atob(text), letter => letter.charCodeAt(0)).buffer : null;
  } catch {
    return null;
  }
}

/** Whether there may be a microphone: browsers open it to pages of this machine and of https alone. */
export const mayRecord = () => Boolean(navigator.mediaDevices?.getUserMedia && window.MediaRecorder);

/**
 * The bytes of what the microphone hears, in a format of the browser's. It ends after `most` seconds, or when somebody calls
 * the function that `begun` gets; it is thrown away if `signal` says so. `tell` hears the seconds.
 */
export async function record({most, begun, tell, signal}) {
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({audio: true});
  } catch {
    throw new Error('The browser gives no microphone: allow it for this page, or choose a file.');
  }
  try {
    signal.throwIfAborted();
    const recorder = new MediaRecorder(stream), parts = [], since = performance.now();
    const end = () => { if (recorder.state !== 'inactive') recorder.stop(); };
    const ended = new Promise((done, fail) => {
      recorder.onstop = done;
      recorder.onerror = () => fail(new Error('The microphone is gone.'));
    });
    recorder.ondataavailable = ({data}) => parts.push(data);
    signal.addEventListener('abort', end);
    recorder.start();
    begun(end);
    const clock = setInterval(() => {
      const seconds = (performance.now() - since) / 1000;
      tell(seconds);
      if (seconds >= most) end();
    }, 200);
    await ended.finally(() => clearInterval(clock));
    signal.throwIfAborted();
    return await new Blob(parts, {type: recorder.mimeType}).arrayBuffer();
  } finally {
    for (const track of stream.getTracks()) track.stop();
  }
}
