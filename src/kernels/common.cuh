// What the CUDA texts of this folder share: bf16 by its bits, packs of elements that one instruction loads
// (16 bytes if kVector is 8), and sums over a warp and a block. The texts include nothing else, because NVRTC
// brings no headers of its own. The host's tests compile the same texts as C++ (tests/mpi/emulated_gpu.h).
#pragma once

// Write this before a loop over an array that must stay in registers. It unrolls the loop, however long its
// body is.
#ifdef __CUDACC__
#define IN_REGISTERS _Pragma("unroll")
#else
#define IN_REGISTERS
#endif

struct Bf16 {
  unsigned short bits;
};

__device__ inline float to_float(Bf16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }

// Rounds to the nearest value, ties to even.
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

// 2 to the power of x, to 2 units in the last place. Results below a float's normal numbers are 0.
__device__ inline float exp2_fast(float x) {
#ifdef __CUDA_ARCH__
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return exp2f(x);
#endif
}

// kVector adjacent elements: two in a register, the first in its lower half.
template <int kVector>
struct alignas(2 * kVector) Pack {
  unsigned words[kVector / 2];
  __device__ float operator[](int i) const {
    return __uint_as_float(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000u);
  }
  __device__ void put(int i, Bf16 x) {
    words[i / 2] = i % 2 == 0 ? (words[i / 2] & 0xffff0000u) | x.bits
                              : (words[i / 2] & 0xffffu) | static_cast<unsigned>(x.bits) << 16;
  }
};
template <>
struct Pack<1> {
  Bf16 element;
  __device__ float operator[](int) const { return to_float(element); }
  __device__ void put(int, Bf16 x) { element = x; }
};

template <int kVector>
__device__ inline Pack<kVector> rounded(const float (&x)[kVector]) {
  Pack<kVector> pack = {};
  for (int i = 0; i < kVector; ++i) {
#ifdef __CUDA_ARCH__
    if constexpr (kVector > 1) {
      if (i % 2 == 0)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pack.words[i / 2]) : "f"(x[i + 1]), "f"(x[i]));
      continue;
    }
#endif
    pack.put(i, to_bf16(x[i]));
  }
  return pack;
}

// The elementwise maximum.
template <int kVector>
__device__ inline Pack<kVector> larger(Pack<kVector> a, const Pack<kVector>& b) {
  for (int i = 0; i < kVector; ++i) {
#ifdef __CUDA_ARCH__
    if constexpr (kVector > 1) {
      if (i % 2 == 0) asm("max.bf16x2 %0, %0, %1;" : "+r"(a.words[i / 2]) : "r"(b.words[i / 2]));
      continue;
    }
#endif
    a.put(i, to_bf16(fmaxf(a[i], b[i])));
  }
  return a;
}

template <int kVector>
__device__ inline Pack<kVector> load(const Bf16* from) {
  return *reinterpret_cast<const Pack<kVector>*>(from);
}
// Stores a pack in one instruction, too, which the compiler does not always do for a struct.
template <int kVector>
__device__ inline void store(Bf16* to, const Pack<kVector>& pack) {
  static_assert(kVector == 1 || kVector == 8);
#ifdef __CUDA_ARCH__
  if constexpr (kVector == 8) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(__cvta_generic_to_global(to)), "r"(pack.words[0]), "r"(pack.words[1]),
                   "r"(pack.words[2]), "r"(pack.words[3])
                 : "memory");
    return;
  }
#endif
  *reinterpret_cast<Pack<kVector>*>(to) = pack;
}

// Call this between two loops that read a pack. Otherwise the compiler keeps its elements as floats, which
// takes twice the registers.
template <int kVector>
__device__ inline void keep_packed([[maybe_unused]] Pack<kVector>& pack) {
#ifdef __CUDA_ARCH__
  if constexpr (kVector > 1)
    for (int i = 0; i < kVector / 2; ++i) asm volatile("" : "+r"(pack.words[i]));
#endif
}

// The sum over the 32 threads of a warp, returned to each of them.
__device__ inline float warp_sum(float x) {
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffffu, x, offset);
  return x;
}

// Sums over the threads of a block, of which there are at most 256, returned to each of them: kCount numbers
// of a thread. `sums` is shared memory for those of each warp.
template <int kCount>
__device__ inline void block_sum(float (&x)[kCount], float (&sums)[kCount][8]) {
  for (int i = 0; i < kCount; ++i) {
    x[i] = warp_sum(x[i]);
    if (threadIdx.x % 32 == 0) sums[i][threadIdx.x / 32] = x[i];
  }
  __syncthreads();
  for (int i = 0; i < kCount; ++i) {
    x[i] = 0;
    for (int warp = 0; warp < blockDim.x / 32; ++warp) x[i] += sums[i][warp];
  }
  __syncthreads();  // before they are written again
}
