// The states of a reduction whose row names no struct of reduce.h, made of the row's statements; in namespace cxxi. Truth values lie as bytes.
template <class D, int L>
struct /*{{name*/ state_example_f32 /*}}*/ {
  /*{{for components*/ vec</*{{type*/ float /*}}*/, L> /*{{c*/ c_value /*}}*/; /*}}*/
  /*{{name*/ state_example_f32 /*}}*/() {
    /*{{start*/ c_value = widen<L>(0.0f); /*}}*/
  }
  template <class V, class P>
  void update(V v, P position) {
    const auto x = /*{{operand*/ to_state<D, L>(v) /*}}*/;
    const auto at = widen<L>(convert<long long>(position));
    /*{{name*/ state_example_f32 /*}}*/ b;
    /*{{lift*/ b.c_value = widen<L>(x); /*}}*/
    merge(b);
  }
  void merge(const /*{{name*/ state_example_f32 /*}}*/& b) {
    /*{{merge*/ c_value = widen<L>(c_value + b.c_value); /*}}*/
  }
  template <int N, int First>
  /*{{name*/ state_example_f32 /*}}*/<D, N> lanes() const {
    /*{{name*/ state_example_f32 /*}}*/<D, N> some;
    /*{{for components*/ some./*{{c*/ c_value /*}}*/ = part<N, First>(/*{{c*/ c_value /*}}*/); /*}}*/
    return some;
  }
  auto across() const { return joined_across</*{{name*/ state_example_f32 /*}}*/, L>(*this); }
  template <int K>
  auto result() const {
    /*{{finish*/ if constexpr (K == 0) return from_state<D, L>(widen<L>(c_value)); /*}}*/
  }
};
