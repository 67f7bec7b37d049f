//! The server's side of a SCRAM-SHA-256 exchange, to test ours against: the client's nonce is
//! random, so a recording cannot be replayed.

/// A server that knows the password's keys and not the password.
pub(super) struct ScramServer {
    salt: String,
    stored_key: Vec<u8>,
    server_key: Vec<u8>,
    rounds: u32,
    first_messages: String,
}

impl ScramServer {
    /// Keys as the server's catalogue would hold them: `SCRAM-SHA-256$4096:salt$stored:server`.
    pub(super) fn new(password: &str) -> Self {
        let secret = postgres_protocol::password::scram_sha_256(password.as_bytes());
        let parts: Vec<&str> = secret.split(['$', ':']).collect();
        let [_, rounds, salt, stored_key, server_key] = parts[..] else {
            panic!("{secret} has five parts");
        };
        ScramServer {
            salt: salt.to_owned(),
            stored_key: base64_decode(stored_key),
            server_key: base64_decode(server_key),
            rounds: rounds.parse().unwrap(),
            first_messages: String::new(),
        }
    }

    /// Demands this many rounds, whatever the keys were made with.
    pub(super) fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }

    /// The challenge, from the client's first message (without its binding header).
    pub(super) fn challenge(&mut self, client_first_bare: &str) -> String {
        let nonce = client_first_bare.split_once("r=").unwrap().1;
        let challenge = format!("r={nonce}SERVER,s={},i={}", self.salt, self.rounds);
        self.first_messages = format!("{client_first_bare},{challenge}");
        challenge
    }

    /// Checks the client's proof and gives our own.
    pub(super) fn verify(&self, client_final: &str) -> String {
        let (without_proof, proof) = client_final.split_once(",p=").unwrap();
        let auth_message = format!("{},{without_proof}", self.first_messages);
        let signature = hmac(&self.stored_key, auth_message.as_bytes());
        let client_key: Vec<u8> = base64_decode(proof)
            .iter()
            .zip(signature)
            .map(|(proof, signature)| proof ^ signature)
            .collect();
        assert_eq!(sha256(&client_key).to_vec(), self.stored_key, "the proof");
        let signature = hmac(&self.server_key, auth_message.as_bytes());
        format!("v={}", base64_encode(&signature))
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64_encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 4];
        group[1..=chunk.len()].copy_from_slice(chunk);
        let group = u32::from_be_bytes(group);
        for place in 0..4 {
            let digit = ALPHABET[(group >> (18 - 6 * place)) as usize & 63];
            let padding = place > chunk.len();
            text.push(if padding { '=' } else { char::from(digit) });
        }
    }
    text
}

fn base64_decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0_u32, 0);
    for digit in text.bytes().filter(|&digit| digit != b'=') {
        let value = ALPHABET.iter().position(|&known| known == digit).unwrap();
        bits = bits << 6 | value as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    assert!(key.len() <= 64);
    let pad = |with: u8| -> Vec<u8> {
        (0..64)
            .map(|place| key.get(place).copied().unwrap_or(0) ^ with)
            .collect()
    };
    let inner = sha256(&[&pad(0x36)[..], message].concat());
    sha256(&[&pad(0x5c)[..], &inner].concat())
}

/// FIPS 180-4, with the constants computed: fractions of square and cube roots of primes.
fn sha256(message: &[u8]) -> [u8; 32] {
    let primes: Vec<u32> = (2..312)
        .filter(|&n: &u32| (2..n).all(|divisor| n % divisor != 0))
        .take(64)
        .collect();
    let constants: Vec<u32> = primes.iter().map(|&p| root_fraction(p, 3)).collect();
    let mut hash: Vec<u32> = primes[..8].iter().map(|&p| root_fraction(p, 2)).collect();
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - message.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let length_at = padded.len() - 8;
    padded[length_at..].copy_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(64) {
        compress(&mut hash, block, &constants);
    }
    let mut digest = [0; 32];
    for (place, word) in digest.chunks_mut(4).zip(hash) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

fn compress(hash: &mut [u32], block: &[u8], constants: &[u32]) {
    let mut schedule: Vec<u32> = block
        .chunks(4)
        .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
        .collect();
    for t in 16..64 {
        let (early, late) = (schedule[t - 15], schedule[t - 2]);
        let first = early.rotate_right(7) ^ early.rotate_right(18) ^ early >> 3;
        let second = late.rotate_right(17) ^ late.rotate_right(19) ^ late >> 10;
        let sum = schedule[t - 16].wrapping_add(first);
        schedule.push(sum.wrapping_add(schedule[t - 7]).wrapping_add(second));
    }
    let mut state: Vec<u32> = hash.to_vec();
    for t in 0..64 {
        let (a, e) = (state[0], state[4]);
        let choice = e & state[5] ^ !e & state[6];
        let majority = a & state[1] ^ a & state[2] ^ state[1] & state[2];
        let first = state[7]
            .wrapping_add(e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25))
            .wrapping_add(choice)
            .wrapping_add(constants[t])
            .wrapping_add(schedule[t]);
        let second =
            (a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22)).wrapping_add(majority);
        state.rotate_right(1);
        state[4] = state[4].wrapping_add(first);
        state[0] = first.wrapping_add(second);
    }
    for (word, addend) in hash.iter_mut().zip(state) {
        *word = word.wrapping_add(addend);
    }
}

/// The first 32 bits of the fraction of a prime's root: ⌊p^(1/n) · 2^32⌋, less its whole part.
fn root_fraction(prime: u32, degree: u32) -> u32 {
    let target = u128::from(prime) << (32 * degree);
    let (mut low, mut high) = (0_u128, 1 << 40);
    while low + 1 < high {
        let middle = u128::midpoint(low, high);
        if middle.pow(degree) <= target {
            low = middle;
        } else {
            high = middle;
        }
    }
    low as u32
}

#[test]
fn the_hash_is_sha256() {
    let hex = |bytes: [u8; 32]| bytes.map(|byte| format!("{byte:02x}")).concat();
    assert_eq!(
        hex(sha256(b"abc")),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert_eq!(
        hex(hmac(b"Jefe", b"what do ya want for nothing?")),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    );
}
