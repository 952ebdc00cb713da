"""A synthesized voice: sentences as sound, without a sound card."""

import array
import ctypes
import wave

import espeakng_loader

RATE = 16_000
SYNCHRONOUS = 2
UTF8 = 1
SPEED = 1


def spoken(text, words_per_minute=120):
    """Returns the samples of a sentence and their rate."""
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    samples = array.array("h")
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)

    def collect(data, count, _events):
        if data and count > 0:
            samples.frombytes(ctypes.string_at(data, 2 * count))
        return 0

    callback = kind(collect)
    rate = library.espeak_Initialize(SYNCHRONOUS, 0, espeakng_loader.get_data_path().encode(), 0)
    assert rate > 0, "the synthesizer does not start"
    library.espeak_SetSynthCallback(callback)
    library.espeak_SetVoiceByName(b"en-us")
    library.espeak_SetParameter(SPEED, words_per_minute, 0)
    data = text.encode()
    library.espeak_Synth(data, len(data) + 1, 0, 1, 0, UTF8, None, None)
    library.espeak_Synchronize()
    return samples, rate


def resampled(samples, rate):
    """Returns the samples at the rate of the recognizer, interpolated."""
    count = len(samples) * RATE // rate
    result = array.array("h", bytes(2 * count))
    for index in range(count):
        place = index * rate / RATE
        left = int(place)
        right = min(left + 1, len(samples) - 1)
        part = place - left
        result[index] = int(samples[left] * (1 - part) + samples[right] * part)
    return result


def write(sentences, path):
    """Writes sentences to a file, with a pause after each: without it, a recognizer loses the last word."""
    pause = array.array("h", bytes(2 * RATE * 3 // 2))
    sound = array.array("h", pause)
    for sentence in sentences:
        sound.extend(resampled(*spoken(sentence)))
        sound.extend(pause)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(sound.tobytes())
