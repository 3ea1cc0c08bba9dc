// Generates tokens with an exported decoder whose key-value cache is in its buffers (export.py): reads the prompt in one call, then a token
// in each. Prints the tokens and tokens per second. --compare generates them op by op through ATen too: exit status 1 if they differ.
//
// Usage: text_generation MODEL.pt2 [--prompt 3,1,4] [--tokens 32] [--sample TEMPERATURE] [--seed 0] [--compare]
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <cxxinductor/cxxinductor.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Arguments {
  std::string model;
  std::vector<int64_t> prompt = {3, 1, 4};
  int64_t tokens = 32;
  std::optional<double> temperature;  // none: the likeliest token
  uint64_t seed = 0;
  bool compare = false;
};

std::vector<int64_t> parse_list(const std::string& text) {
  std::vector<int64_t> list;
  std::istringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) list.push_back(std::stoll(item));
  return list;
}

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&]() -> std::string {
      if (++i == argc) throw std::invalid_argument(name + ": expected a value");
      return argv[i];
    };
    if (name == "--prompt")
      arguments.prompt = parse_list(value());
    else if (name == "--tokens")
      arguments.tokens = std::stoll(value());
    else if (name == "--sample")
      arguments.temperature = std::stod(value());
    else if (name == "--seed")
      arguments.seed = std::stoull(value());
    else if (name == "--compare")
      arguments.compare = true;
    else if (arguments.model.empty() && name.rfind("--", 0) != 0)
      arguments.model = name;
    else
      throw std::invalid_argument("unknown argument " + name);
  }
  if (arguments.model.empty() || arguments.prompt.empty() || arguments.tokens < 1)
    throw std::invalid_argument("expected MODEL.pt2, a prompt and at least one token");
  return arguments;
}

double seconds_since(std::chrono::steady_clock::time_point start) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }

// logits: f32[1, vocabulary]; returns i64[1, 1] on the same device, so that a GPU is not waited for.
at::Tensor next_token(const at::Tensor& logits, const Arguments& arguments) {
  if (!arguments.temperature) return logits.argmax(-1, /*keepdim=*/true);
  return at::multinomial(at::softmax(logits / *arguments.temperature, -1), 1);
}

struct Generated {
  std::vector<int64_t> tokens;
  double prompt_seconds = 0, seconds = 0;  // reading the prompt; all tokens after the first
};

Generated generate(const cxxinductor::Model& model, const Arguments& arguments) {
  const at::Tensor cache = model.weight("keys0");  // [1, heads, positions, width]
  const auto length = static_cast<int64_t>(arguments.prompt.size());
  if (length + arguments.tokens > cache.size(2))
    throw std::invalid_argument("prompt and tokens exceed the cache of " + std::to_string(cache.size(2)) + " positions");
  const auto indices = at::TensorOptions().dtype(at::kLong).device(cache.device());
  at::manual_seed(arguments.seed);

  Generated generated;
  std::vector<at::Tensor> tokens;
  auto start = std::chrono::steady_clock::now();
  const at::Tensor prompt = at::tensor(arguments.prompt, at::kLong).to(cache.device()).unsqueeze(0);
  tokens.push_back(next_token(model.run({prompt, at::arange(length, indices)}).at(0).toTensor(), arguments));
  tokens.back().item();  // waits for the GPU
  generated.prompt_seconds = seconds_since(start);

  start = std::chrono::steady_clock::now();
  at::Tensor position = at::full({1}, length, indices);
  while (static_cast<int64_t>(tokens.size()) < arguments.tokens) {
    tokens.push_back(next_token(model.run({tokens.back(), position}).at(0).toTensor(), arguments));
    position = position + 1;
  }
  const at::Tensor all = at::cat(tokens, 1).cpu();
  generated.seconds = seconds_since(start);
  generated.tokens.assign(all.const_data_ptr<int64_t>(), all.const_data_ptr<int64_t>() + all.numel());
  return generated;
}

void print_speed(const char* name, const Generated& generated, const Arguments& arguments) {
  std::printf("%s: prompt of %zu tokens in %.2f ms, then %.1f tokens/s\n", name, arguments.prompt.size(), generated.prompt_seconds * 1e3,
              static_cast<double>(arguments.tokens - 1) / generated.seconds);
}

}  // namespace

int main(int argc, char** argv) try {
  const Arguments arguments = parse_arguments(argc, argv);
  const at::NoGradGuard no_gradients;
  cxxinductor::Options options = cxxinductor::options_from_environment();
  const cxxinductor::Model model = cxxinductor::load(arguments.model, options);
  generate(model, arguments);  // first calls compile kernels for their sizes
  const Generated compiled = generate(model, arguments);
  for (int64_t token : compiled.tokens) std::cout << token << ' ';
  std::cout << std::endl;
  print_speed("compiled", compiled, arguments);
  if (!arguments.compare) return 0;

  options.tier = "aten";
  const cxxinductor::Model op_by_op = cxxinductor::load(arguments.model, options);
  generate(op_by_op, arguments);
  const Generated expected = generate(op_by_op, arguments);
  print_speed("ATen", expected, arguments);
  std::cout << (expected.tokens == compiled.tokens ? "the tokens are equal" : "the tokens DIFFER") << std::endl;
  return expected.tokens == compiled.tokens ? 0 : 1;
} catch (const cxxinductor::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
} catch (const std::invalid_argument& error) {
  std::cerr << error.what() << "\nusage: text_generation MODEL.pt2 [--prompt 3,1,4] [--tokens 32] [--sample TEMPERATURE] [--seed 0] [--compare]\n";
  return 2;
} catch (const std::exception& error) {
  std::cerr << "PyTorch: " << error.what() << '\n';
  return 1;
}
