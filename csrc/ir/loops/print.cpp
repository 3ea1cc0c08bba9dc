#include "ir/loops/region_text.h"
#include "ir/loops/text.h"
#include "ir/program_text.h"
#include "ir/strides.h"
#include "support/error.h"

namespace cxxinductor::loops {
namespace {

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {
    for (const ProgramInput& input : program.inputs)
      if (input.kind == ProgramInput::Kind::Tensor && program.buffers.contains(input.buffer)) {
        device_ = program.buffers[input.buffer].device;
        return;
      }
    for (const Buffer& buffer : program.buffers) {
      device_ = buffer.device;
      return;
    }
  }

  std::string print() {
    std::vector<std::string> inputs;
    for (const ProgramInput& input : program_.inputs) inputs.push_back(input_text(input));
    std::string device = device_ == Device() ? "" : fmt::format(" on {} ", to_string(device_));
    writer_.line("program @{}{}({}){} {{", program_.name, device, fmt::join(inputs, ", "), print_where(program_.assumptions));
    writer_.indent();
    print_eager_peaks(writer_, program_.eager_peaks, device_);
    for (const Buffer& buffer : program_.buffers)
      if (buffer.role != Buffer::Role::Input) writer_.line("{} {}", buffer.role == Buffer::Role::Output ? "output" : "temporary", buffer_text(buffer));
    for (const Step& step : program_.steps) {
      if (const auto* region = std::get_if<Region>(&step))
        print(*region);
      else
        writer_.raw_line(extern_text(std::get<ExternCall>(step)));
    }
    writer_.raw_line(print_return(program_.outputs, [this](BufferId id) { return name(id); }));
    writer_.dedent();
    writer_.line("}}");
    return std::move(writer_).take();
  }

  std::string print_one(const Region& region) {
    print(region);
    return std::move(writer_).take();
  }

 private:
  void print(const Region& region) {
    RegionPrinting how;
    how.buffer = [this](BufferId id) { return program_.buffers.contains(id) ? program_.buffers[id].name : "?"; };
    how.origins = &program_.origins;
    how.device = device_;
    print_region(writer_, region, how);
  }

  std::string name(BufferId id) const { return program_.buffers.contains(id) ? "@" + program_.buffers[id].name : "@?"; }

  std::string buffer_text(const Buffer& buffer) const {
    std::string text = fmt::format("@{}: {}{}", buffer.name, to_string(buffer.dtype), print_expr_list(buffer.sizes));
    if (buffer.strides != row_major_strides(buffer.sizes)) text += " strides " + print_expr_list(buffer.strides);
    if (bool assumed = buffer.role == Buffer::Role::Input; buffer.fixed != assumed) text += buffer.fixed ? " fixed" : " flexible";
    if (buffer.device != device_) text += " on " + to_string(buffer.device);
    return text;
  }

  std::string input_text(const ProgramInput& input) const {
    if (input.kind != ProgramInput::Kind::Tensor) return cxxinductor::print_input(input, "", "");
    CXXI_CHECK(program_.buffers.contains(input.buffer), "an input names no buffer");
    const Buffer& buffer = program_.buffers[input.buffer];
    return cxxinductor::print_input(input, buffer_text(buffer), buffer.name);
  }

  std::string extern_text(const ExternCall& call) const {
    return print_extern<View>(
               call, [this](BufferId id) { return name(id); },
               [this](BufferId id) { return program_.buffers.contains(id) ? &program_.buffers[id] : nullptr; }) +
           print_origin(program_.origins, call.origin);
  }

  const Program& program_;
  Device device_;
  TextWriter writer_;
};

}  // namespace

std::string print(const Program& program) { return Printer(program).print(); }
std::string print(const Program& program, const Region& region) { return Printer(program).print_one(region); }

}  // namespace cxxinductor::loops
