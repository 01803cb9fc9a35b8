// The precompiled header of tests that do not need LibTorch.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/pch.h"
