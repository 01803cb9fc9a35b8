// What the texts of this folder share: bf16 by its bits, packs of elements that one instruction loads (16
// bytes where kVector is 8), and sums over a warp. They include nothing else, because NVRTC brings no header
// of its own; the host's tests compile the same texts as C++ (tests/mpi/emulated_gpu.h).
#pragma once

struct Bf16 {
  unsigned short bits;
};

__device__ inline float to_float(Bf16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }

// To the nearest, of two equally near ones to the even one.
__device__ inline Bf16 to_bf16(float x) {
  Bf16 rounded;
#ifdef __CUDA_ARCH__
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(x));
#else
  const unsigned bits = __float_as_uint(x);
  rounded.bits = static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
  return rounded;
}

template <int kVector>
struct alignas(2 * kVector) Pack {
  Bf16 at[kVector];
};
template <int kVector>
__device__ inline Pack<kVector> load(const Bf16* from) {
  return *reinterpret_cast<const Pack<kVector>*>(from);
}
// In one instruction, too, which the compiler does not always make of a struct.
template <int kVector>
__device__ inline void store(Bf16* to, const Pack<kVector>& pack) {
  static_assert(kVector == 1 || kVector == 8);
#ifdef __CUDA_ARCH__
  if constexpr (kVector == 8) {
    unsigned words[4];
    for (int i = 0; i < 4; ++i) words[i] = pack.at[2 * i].bits | pack.at[2 * i + 1].bits << 16;
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(__cvta_generic_to_global(to)), "r"(words[0]), "r"(words[1]), "r"(words[2]),
                   "r"(words[3])
                 : "memory");
    return;
  }
#endif
  *reinterpret_cast<Pack<kVector>*>(to) = pack;
}

// The sum over the 32 threads of a warp, in each of them.
__device__ inline float warp_sum(float x) {
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffffu, x, offset);
  return x;
}
