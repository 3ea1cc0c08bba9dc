// The loops of each mapping around the bodies of its segments.
#pragma once

#include "codegen/cpu/cpu_text.h"

namespace cxxinductor::codegen {

void write_units(CpuText& text, const plan::CpuPointwise& shape);
void write_units(CpuText& text, const plan::CpuRows& shape);
void write_units(CpuText& text, const plan::CpuColumns& shape);
void write_units(CpuText& text, const plan::CpuTiles& shape);

}  // namespace cxxinductor::codegen
