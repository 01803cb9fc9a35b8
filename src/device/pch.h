// The precompiled header for code that needs torch: the headers that nearly all of it includes.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include "base/pch.h"
