// Calls in the text form, with what rules state of their results: "f32[2, s0] strides [s0, 1]", "offset(4)" and
// "storage 1" where the result is a view; results are separated by "; ".
#pragma once

#include <string>
#include <vector>

#include "unit/catch.h"
#include "unit/model/aten_schemas.h"

namespace cxxinductor::model {

struct InferCase {
  // "%x: f32[4]; %y: f32[s0]", and the symbols' ranges in front: "2 <= s0 | %x: f32[s0]"
  const char* inputs;
  const char* call;      // "\"aten::neg\"(%x)"
  const char* expected;  // "none" where there is no rule; "error: text" where the call is rejected with that text
};

// By what is proved from the symbols' ranges alone.
std::string inferred(const InferCase& one);
std::string inferred(const InferCase& one, const SchemaSource& schemas);

inline void check_cases(const std::vector<InferCase>& cases, const SchemaSource& schemas) {
  for (const InferCase& one : cases) {
    CAPTURE(one.inputs, one.call);
    const std::string found = inferred(one, schemas), expected = one.expected;
    if (expected.starts_with("error: "))
      CHECK(found.find(expected.substr(7)) != found.npos);
    else
      CHECK(found == expected);
  }
}

inline void check_cases(const std::vector<InferCase>& cases) { check_cases(cases, aten_schemas()); }

}  // namespace cxxinductor::model
