// Rotary position embedding of queries or keys in bf16, [tokens, heads, D]: channels i and i + D/2 of a head
// are a pair (a, b), which becomes (a c - b s, b c + a s) with the cosine c and the sine s of the token's
// position; with the direction -1 the other way, which is the backward.
//
// Bytes per element: reads 2 and writes 2, and the tables, which all heads share. torch's kernels take four
// passes over halves, 10.
// Source: Su et al. 2021, "RoFormer"; the order of channels is Hugging Face's.
#include "kernels/common.cuh"

// Launch with a thread for kVector pairs of a head. cos and sin are [positions, half], half = D / 2, a
// multiple of kVector. positions are those of all tokens; nullptr: 0 to sequence - 1, again and again.
template <int kVector>
__global__ void __launch_bounds__(256)
    rotary(const Bf16* x, const Bf16* cos, const Bf16* sin, const long long* positions, Bf16* y,
           long long tokens, long long sequence, long long heads, long long half, float direction) {
  const long long packs = half / kVector, at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= tokens * heads * packs) return;
  const long long head = at / packs, token = head / heads, first = at % packs * kVector;
  const long long position = positions == nullptr ? token % sequence : positions[token];
  const Bf16* const of_head = x + head * 2 * half + first;
  const Pack<kVector> a = load<kVector>(of_head), b = load<kVector>(of_head + half);
  const Pack<kVector> c = load<kVector>(cos + position * half + first),
                      s = load<kVector>(sin + position * half + first);
  float turned_a[kVector], turned_b[kVector];
  for (int i = 0; i < kVector; ++i) {
    turned_a[i] = a[i] * c[i] - direction * b[i] * s[i];
    turned_b[i] = b[i] * c[i] + direction * a[i] * s[i];
  }
  store(y + head * 2 * half + first, rounded(turned_a));
  store(y + head * 2 * half + half + first, rounded(turned_b));
}
