#include "support/options.h"

#include "support/error.h"
#include "unit/catch.h"

using namespace cxxinductor;

TEST_CASE("defaults and settings of each type") {
  Options options;
  REQUIRE(options.eager_numerics());
  set_option(options, "numerics", "fast");
  set_option(options, "fusion", "false");
  set_option(options, "compile_threads", "3");
  REQUIRE_FALSE(options.eager_numerics());
  REQUIRE_FALSE(options.fusion);
  REQUIRE(options.compile_threads == 3);
}

TEST_CASE("an unknown option lists the known ones and the nearest") {
  Options options;
  try {
    set_option(options, "numeric", "fast");
    FAIL("accepted");
  } catch (const UserError& e) {
    const std::string message = e.what();
    REQUIRE(message.find("did you mean 'numerics'") != std::string::npos);
    for (const OptionInfo& row : option_table()) REQUIRE(message.find(row.name) != std::string::npos);
  }
}

TEST_CASE("bad values say what is expected") {
  Options options;
  REQUIRE_THROWS_WITH(set_option(options, "fusion", "yes"), "option 'fusion': expected true or false, found 'yes'");
  REQUIRE_THROWS_WITH(set_option(options, "compile_threads", "2x"), "option 'compile_threads': expected an integer, found '2x'");
  REQUIRE_THROWS_WITH(set_option(options, "verify", "all"), "option 'verify': expected one of 'each', 'boundaries', 'off', found 'all'");
}

TEST_CASE("numbers have ranges") {
  Options options;
  REQUIRE_THROWS_WITH(set_option(options, "compile_threads", "-1"), "option 'compile_threads': expected an integer from 0 to 4096, found '-1'");
  for (const char* option : {"check_tolerance", "cache_size", "compile_timeout", "max_fusion_size"}) {
    REQUIRE_THROWS_WITH(set_option(options, option, "-1"), mentions("expected an integer from"));
    REQUIRE_THROWS_WITH(set_option(options, option, "9000000000000000000"), mentions("expected an integer from"));
  }
  options.compile_timeout = 0;
  REQUIRE_THROWS_WITH(check_options(options), mentions("option 'compile_timeout': expected an integer from 1"));
}

TEST_CASE("an option of several words takes each of them and names the wrong one") {
  Options options;
  set_option(options, "dump", "graph,plan");
  REQUIRE(options.dump == "graph,plan");
  set_option(options, "dump", "graph,after:lower");  // names of stages are the driver's to check
  REQUIRE(options.dump == "graph,after:lower");
  set_option(options, "dump", "");
  REQUIRE_THROWS_WITH(set_option(options, "dump", "graph,plans"), mentions("'source', 'all', 'after:STAGE', found 'plans'"));
  REQUIRE(options.dump.empty());
}

TEST_CASE("the environment: ours are read, unknown ones of ours are errors, others are not ours") {
  const Options options = options_from_environment({{"PATH", "/bin"}, {"CXXINDUCTOR_VERIFY", "each"}, {"CXXINDUCTOR_BLESS", "1"}});
  REQUIRE(options.verify == "each");
  REQUIRE_THROWS_AS(options_from_environment({{"CXXINDUCTOR_VERFY", "each"}}), UserError);
  REQUIRE_THROWS_WITH(options_from_environment({{"CXXINDUCTOR_VERFY", "each"}}), mentions("did you mean 'CXXINDUCTOR_VERIFY'"));
}

TEST_CASE("an empty variable leaves the default") {
  REQUIRE(to_string(options_from_environment({{"CXXINDUCTOR_VERIFY", ""}, {"CXXINDUCTOR_CACHE_SIZE", ""}})) == to_string(Options{}));
}

TEST_CASE("items of lists are checked where they are read") {
  Options options;
  const std::string key(64, 'a');
  set_option(options, "allow_ops", "mylib::op_2, torchvision,");
  set_option(options, "trusted_keys", key + ", " + key);
  REQUIRE(list_items(options.allow_ops) == std::vector<std::string>{"mylib::op_2", "torchvision"});
  for (const std::string wrong : {"mylib:op", "mylib::op.default", "mylib::", "::op", "my lib", "a::b::c"})
    REQUIRE_THROWS_WITH(set_option(options, "allow_ops", "torchvision," + wrong),
                        mentions("expected mylib::op, or mylib for all ops of a library") && mentions("found '" + wrong + "'"));
  for (const std::string& wrong : {std::string("d75a"), key + "a", std::string(64, 'g')})
    REQUIRE_THROWS_WITH(set_option(options, "trusted_keys", wrong), mentions("64 hexadecimal digits each, separated by commas, found '" + wrong));
  REQUIRE_THROWS_AS(options_from_environment({{"CXXINDUCTOR_TRUSTED_KEYS", "key"}}), UserError);
  options.trusted_keys = "key";
  REQUIRE_THROWS_AS(check_options(options), UserError);
}

TEST_CASE("variables that are not options are known by name") {
  for (const VariableInfo& row : variable_table()) options_from_environment({{std::string(row.name), "1"}});
  REQUIRE_THROWS_AS(options_from_environment({{"CXXINDUCTOR_BUILD_DIRECTORY", "1"}}), UserError);
}

TEST_CASE("old names are errors that give the new ones") {
  Options options;
  REQUIRE_THROWS_WITH(set_option(options, "disable", "graph-cse"), "option 'disable' is now 'skip_passes'");
  REQUIRE_THROWS_WITH(set_option(options, "max_fused_statements", "4"), "option 'max_fused_statements' is now 'max_fusion_size'");
  REQUIRE_THROWS_WITH(set_option(options, "verify", "ends"), "option 'verify': 'ends' is now 'boundaries'");
  REQUIRE_THROWS_WITH(set_option(options, "skip_passes", "graph-no-ops, graph-common"), "option 'skip_passes': 'graph-common' is now 'graph-cse'");
  REQUIRE_THROWS_WITH(options_from_environment({{"CXXINDUCTOR_DISABLE", ""}}), "environment variable 'CXXINDUCTOR_DISABLE' is now 'CXXINDUCTOR_SKIP_PASSES'");
  REQUIRE(to_string(options) == to_string(Options{}));
}

TEST_CASE("canonical text changes with every option") {
  const std::string before = to_string(Options{});
  for (const OptionInfo& row : option_table()) {
    Options options;
    const auto words = option_values(row.name);
    const std::string value = row.type == "bool"           ? (get_option(Options(), row.name) == "true" ? "false" : "true")
                              : row.type == "int64_t"      ? "7"
                              : row.type == "double"       ? "0.5"
                              : row.name == "trusted_keys" ? std::string(64, 'a')
                              : words.empty()              ? "something"
                                                           : std::string(words.back());
    set_option(options, row.name, value);
    REQUIRE(to_string(options) != before);
    REQUIRE(get_option(options, row.name) == value);
    REQUIRE_FALSE(row.doc.empty());
    REQUIRE(environment_variable(row.name).starts_with("CXXINDUCTOR_"));
  }
}
