#include "model/schema.h"

#include <algorithm>
#include <array>

namespace cxxinductor::model {
namespace {

struct Row {
  std::string_view callee;
  PlannedForm form;
};

constexpr std::array rows{
    Row{"aten::mm", PlannedForm::Structured},      Row{"aten::addmm", PlannedForm::Structured},      Row{"aten::bmm", PlannedForm::Structured},
    Row{"aten::baddbmm", PlannedForm::Structured}, Row{"aten::convolution", PlannedForm::ByBackend},
};

}  // namespace

PlannedForm planned_form(std::string_view callee) {
  const auto found = std::ranges::find(rows, callee, &Row::callee);
  return found == rows.end() ? PlannedForm::None : found->form;
}

}  // namespace cxxinductor::model
