// What commands include beside base/pch.h, precompiled: the parser of flags is large.
#pragma once

#include <CLI/CLI.hpp>

#include "base/pch.h"
