// Tests how many of the GPUs that nvidia-smi lists are left by CUDA_VISIBLE_DEVICES.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/visible_gpus.h"

namespace shardmark {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr auto kFour =
    "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-aaaa0000-1111)\n"
    "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-aaaa0001-1111)\n"
    "  MIG 3g.40gb     Device  0: (UUID: MIG-bbbb0000-2222)\n"
    "GPU 2: NVIDIA H100 80GB HBM3 (UUID: GPU-aaaa0002-1111)\n"
    "GPU 3: NVIDIA H100 80GB HBM3 (UUID: GPU-aaaa0003-1111)\n";

TEST(VisibleGpus, AreListedUpToTheFirstThatIsNone) {
  EXPECT_THAT(listed_gpus("0,2"), ElementsAre("0", "2"));
  EXPECT_THAT(listed_gpus(" 1 , 0"), ElementsAre("1", "0"));
  EXPECT_THAT(listed_gpus("0,-1,2"), ElementsAre("0"));
  EXPECT_THAT(listed_gpus("GPU-8932f937,MIG-1"), ElementsAre("GPU-8932f937", "MIG-1"));
  for (const char* none : {"", "-1", "NoDevFiles", "none", "-1,0", ",0", "99999999999999999999"})
    EXPECT_THAT(listed_gpus(none), IsEmpty()) << none;
}

TEST(VisibleGpus, AreCounted) {
  EXPECT_EQ(count_gpus(kFour), 4);
  EXPECT_EQ(count_gpus("NVIDIA-SMI has failed\n"), 0);
  EXPECT_EQ(count_visible_gpus(kFour, "0,1,2,3"), 4);
  EXPECT_EQ(count_visible_gpus(kFour, "2"), 1);
  EXPECT_EQ(count_visible_gpus(kFour, ""), 0);
  EXPECT_EQ(count_visible_gpus(kFour, "-1"), 0);
  EXPECT_EQ(count_visible_gpus(kFour, "3,4,1"), 1) << "there is no GPU 4: the list ends there";
  EXPECT_EQ(count_visible_gpus(kFour, "0,1,0"), 0) << "one named twice";
  EXPECT_EQ(count_visible_gpus(kFour, "GPU-aaaa0002,GPU-aaaa0003-1111"), 2);
  EXPECT_EQ(count_visible_gpus(kFour, "GPU-aaaa0002,GPU-cccc"), 1);
  EXPECT_EQ(count_visible_gpus(kFour, "0,GPU-aaaa0000"), 0) << "one named twice";
  EXPECT_EQ(count_visible_gpus(kFour, "MIG-a,MIG-b,MIG-c,MIG-d,MIG-e"), 5) << "slices may be more";
  EXPECT_EQ(count_visible_gpus("", "0,1"), 0) << "no nvidia-smi";
}

}  // namespace
}  // namespace shardmark
