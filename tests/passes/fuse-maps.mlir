// RUN: sheaf-opt --fuse-maps=remarks=1 %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --fuse-maps=without=fuse-maps %s | FileCheck %s --check-prefix=OFF
// OFF-COUNT-26: sheaf.map

// CHECK-DAG: remark: the map becomes part of the one that makes its list
// CHECK-DAG: remark: the map stays apart from the one that makes its list: it is more than straight-line code that cannot fail
// CHECK-DAG: remark: the map stays apart from the one that makes its list: it takes more than the other does
// CHECK-DAG: remark: the map stays apart from the one that makes its list: it takes what no one block makes
// CHECK-DAG: remark: the map stays apart from the one that makes its list: a kernel of theirs runs elsewhere, too

sheaf.param @w : tensor<4x4xf32> init("glorot", [])

// Two lists that are read side by side: one list of pairs. A parameter may be named in between.
// CHECK-LABEL: func.func @pairs
// CHECK: %[[M:.*]] = sheaf.map %arg0 {{.*}} -> !sheaf.list<tuple<tensor<4xf32>, tensor<4xf32>>>
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<4xf32>):
// CHECK-NEXT: %[[A:.*]] = sheaf.apply "tanh"(%[[X]])
// CHECK-NEXT: %[[W:.*]] = sheaf.param_ref @w
// CHECK-NEXT: %[[P:.*]] = sheaf.apply "matmul"(%[[A]], %[[W]])
// CHECK-NEXT: %[[T:.*]] = sheaf.tuple(%[[A]], %[[P]])
// CHECK-NEXT: sheaf.yield %[[T]]
// CHECK: return %[[M]]
func.func @pairs(%xs: !sheaf.list<tensor<4xf32>>) -> !sheaf.list<tuple<tensor<4xf32>, tensor<4xf32>>> {
  %as = sheaf.map %xs : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%x: tensor<4xf32>):
    %a = sheaf.apply "tanh"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %a : tensor<4xf32>
  }
  %w = sheaf.param_ref @w : tensor<4x4xf32>
  %bs = sheaf.map %as : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%a: tensor<4xf32>, %i: i64):
    %b = sheaf.apply "matmul"(%a, %w) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    sheaf.yield %b : tensor<4xf32>
  }
  %z = sheaf.zip(%as, %bs) : (!sheaf.list<tensor<4xf32>>, !sheaf.list<tensor<4xf32>>) -> !sheaf.list<tuple<tensor<4xf32>, tensor<4xf32>>>
  return %z : !sheaf.list<tuple<tensor<4xf32>, tensor<4xf32>>>
}

// A list that nobody else reads is not made. A check in the second map would come before one in
// the first, at a later element: such a map stays; likewise one that takes what the first makes.
// CHECK-LABEL: func.func @chain
// CHECK-COUNT-1: sheaf.map
// CHECK: sheaf.apply "tanh"
// CHECK-NEXT: sheaf.apply "exp"
// CHECK-NOT: sheaf.map
// CHECK: return
func.func @chain(%xs: !sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  %as = sheaf.map %xs : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%x: tensor<4xf32>):
    %a = sheaf.apply "tanh"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %a : tensor<4xf32>
  }
  %bs = sheaf.map %as : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%a: tensor<4xf32>):
    %b = sheaf.apply "exp"(%a) {} : (tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %b : tensor<4xf32>
  }
  return %bs : !sheaf.list<tensor<4xf32>>
}

// CHECK-LABEL: func.func @apart
// CHECK-COUNT-4: sheaf.map
func.func @apart(%xs: !sheaf.list<tensor<4xf32>>, %c: i1) -> (!sheaf.list<tensor<4xf32>>, !sheaf.list<tensor<4xf32>>) {
  %as = sheaf.map %xs : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%x: tensor<4xf32>):
    %a = sheaf.apply "tanh"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %a : tensor<4xf32>
  }
  %bs = sheaf.map %as : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%a: tensor<4xf32>):
    sheaf.check %c, "no"
    %b = sheaf.apply "exp"(%a) {} : (tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %b : tensor<4xf32>
  }
  %ds = sheaf.map %xs : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%x: tensor<4xf32>):
    %d = sheaf.apply "tanh"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %d : tensor<4xf32>
  }
  %zero = arith.constant 0 : i64
  %between = sheaf.list_get %bs[%zero] : (!sheaf.list<tensor<4xf32>>) -> tensor<4xf32>
  %es = sheaf.map %ds : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%d: tensor<4xf32>):
    %e = sheaf.apply "add"(%d, %between) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %e : tensor<4xf32>
  }
  return %bs, %es : !sheaf.list<tensor<4xf32>>, !sheaf.list<tensor<4xf32>>
}

// Fused, this product would be another kernel than the one of the same weights elsewhere.
sheaf.param @v : tensor<4x4xf32> init("glorot", [])
// CHECK-LABEL: func.func @elsewhere
// CHECK-COUNT-2: sheaf.map
func.func @elsewhere(%x: tensor<4xf32>, %xs: !sheaf.list<tensor<4xf32>>) -> (tensor<4xf32>, !sheaf.list<tensor<4xf32>>) {
  %v = sheaf.param_ref @v : tensor<4x4xf32>
  %y = sheaf.apply "matmul"(%x, %v) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %as = sheaf.map %xs : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%e: tensor<4xf32>):
    %a = sheaf.apply "matmul"(%e, %v) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    sheaf.yield %a : tensor<4xf32>
  }
  %bs = sheaf.map %as : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%a: tensor<4xf32>):
    %b = sheaf.apply "exp"(%a) {} : (tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %b : tensor<4xf32>
  }
  return %y, %bs : tensor<4xf32>, !sheaf.list<tensor<4xf32>>
}

// What the second map takes may be ready later than what the first one takes.
sheaf.param @u : tensor<4x4xf32> init("glorot", [])
// CHECK-LABEL: func.func @late
// CHECK-COUNT-2: sheaf.map
func.func @late(%x: tensor<4xf32>, %xs: !sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  %u = sheaf.param_ref @u : tensor<4x4xf32>
  %y = sheaf.apply "matmul"(%x, %u) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %as = sheaf.map %xs : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%e: tensor<4xf32>):
    %a = sheaf.apply "tanh"(%e) {} : (tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %a : tensor<4xf32>
  }
  %bs = sheaf.map %as : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%a: tensor<4xf32>):
    %b = sheaf.apply "mul"(%a, %y) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %b : tensor<4xf32>
  }
  return %bs : !sheaf.list<tensor<4xf32>>
}

// Equal elements have equal records of the first map, not of the second.
// CHECK-LABEL: func.func @repeats
// CHECK-COUNT-2: sheaf.map
sheaf.param @table : tensor<8x4xf32> init("glorot", [])
func.func @repeats(%x: tensor<4xf32>, %is: !sheaf.list<i64>) -> !sheaf.list<tensor<4xf32>> {
  %as = sheaf.map %is : (!sheaf.list<i64>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%i: i64):
    %table = sheaf.param_ref @table : tensor<8x4xf32>
    %r = sheaf.apply "row"(%table, %i) {} : (tensor<8x4xf32>, i64) -> tensor<4xf32>
    %a = sheaf.apply "tanh"(%r) {} : (tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %a : tensor<4xf32>
  }
  %bs = sheaf.map %as : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%a: tensor<4xf32>):
    %b = sheaf.apply "mul"(%a, %x) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %b : tensor<4xf32>
  }
  return %bs : !sheaf.list<tensor<4xf32>>
}

// Nor do they have where the second takes an int of its own, or its index, as a float.
// CHECK-LABEL: func.func @keys
// CHECK-COUNT-3: sheaf.map
func.func @keys(%k: f64, %is: !sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  %as = sheaf.map %is : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%r: tensor<4xf32>):
    %a = sheaf.apply "tanh"(%r) {} : (tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %a : tensor<4xf32>
  }
  %bs = sheaf.map %as : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%a: tensor<4xf32>):
    %s = sheaf.apply "scalar"(%k) {} : (f64) -> tensor<f32>
    %b = sheaf.apply "mul"(%a, %s) {} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    sheaf.yield %b : tensor<4xf32>
  }
  %cs = sheaf.map %bs : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%b: tensor<4xf32>, %i: i64):
    %f = sheaf.convert %i : i64 to f64
    %s = sheaf.apply "scalar"(%f) {} : (f64) -> tensor<f32>
    %c = sheaf.apply "mul"(%b, %s) {} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    sheaf.yield %c : tensor<4xf32>
  }
  return %cs : !sheaf.list<tensor<4xf32>>
}

// A number of the program is a constant, wherever it stands, and a field of an element that is made
// on the spot is what it was made of: the two are one block.
// CHECK-LABEL: func.func @fields
// CHECK: sheaf.map
// CHECK: %[[R:.*]] = sheaf.apply "matmul"
// CHECK: %[[P:.*]] = sheaf.apply "tanh"(%[[R]])
// CHECK: %[[Q:.*]] = sheaf.apply "exp"(%[[R]])
// CHECK: %[[C:.*]] = arith.constant 2.0
// CHECK: %[[S:.*]] = sheaf.apply "scalar"(%[[C]])
// CHECK-NEXT: %[[M:.*]] = sheaf.apply "mul"(%[[P]], %[[Q]])
// CHECK-NEXT: %[[B:.*]] = sheaf.apply "mul"(%[[M]], %[[S]])
// CHECK-NEXT: sheaf.yield %[[B]]
// CHECK-NOT: sheaf.map
// CHECK: return
sheaf.param @f : tensor<4x4xf32> init("glorot", [])
func.func @fields(%xs: !sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  %f = sheaf.param_ref @f : tensor<4x4xf32>
  %as = sheaf.map %xs : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tuple<tensor<4xf32>, tensor<4xf32>>> {
  ^bb0(%x: tensor<4xf32>):
    %r = sheaf.apply "matmul"(%x, %f) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    %p = sheaf.apply "tanh"(%r) {} : (tensor<4xf32>) -> tensor<4xf32>
    %q = sheaf.apply "exp"(%r) {} : (tensor<4xf32>) -> tensor<4xf32>
    %a = sheaf.tuple(%p, %q) : (tensor<4xf32>, tensor<4xf32>) -> tuple<tensor<4xf32>, tensor<4xf32>>
    sheaf.yield %a : tuple<tensor<4xf32>, tensor<4xf32>>
  }
  %two = arith.constant 2.0 : f64
  %bs = sheaf.map %as : (!sheaf.list<tuple<tensor<4xf32>, tensor<4xf32>>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%a: tuple<tensor<4xf32>, tensor<4xf32>>):
    %p = sheaf.get %a[0] : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
    %q = sheaf.get %a[1] : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
    %s = sheaf.apply "scalar"(%two) {} : (f64) -> tensor<f32>
    %m = sheaf.apply "mul"(%p, %q) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %b = sheaf.apply "mul"(%m, %s) {} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    sheaf.yield %b : tensor<4xf32>
  }
  return %bs : !sheaf.list<tensor<4xf32>>
}

// Fields that two blocks make: both would wait for what either takes.
// CHECK-LABEL: func.func @apiece
// CHECK-COUNT-2: sheaf.map
sheaf.param @g : tensor<4x4xf32> init("glorot", [])
sheaf.param @h : tensor<4x4xf32> init("glorot", [])
func.func @apiece(%xs: !sheaf.list<tuple<tensor<4xf32>, tensor<4xf32>>>) -> !sheaf.list<tensor<4xf32>> {
  %g = sheaf.param_ref @g : tensor<4x4xf32>
  %h = sheaf.param_ref @h : tensor<4x4xf32>
  %as = sheaf.map %xs : (!sheaf.list<tuple<tensor<4xf32>, tensor<4xf32>>>) -> !sheaf.list<tuple<tensor<4xf32>, tensor<4xf32>>> {
  ^bb0(%x: tuple<tensor<4xf32>, tensor<4xf32>>):
    %k = sheaf.get %x[0] : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
    %l = sheaf.get %x[1] : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
    %p = sheaf.apply "matmul"(%k, %g) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    %q = sheaf.apply "matmul"(%l, %h) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    %a = sheaf.tuple(%p, %q) : (tensor<4xf32>, tensor<4xf32>) -> tuple<tensor<4xf32>, tensor<4xf32>>
    sheaf.yield %a : tuple<tensor<4xf32>, tensor<4xf32>>
  }
  %bs = sheaf.map %as : (!sheaf.list<tuple<tensor<4xf32>, tensor<4xf32>>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%a: tuple<tensor<4xf32>, tensor<4xf32>>):
    %p = sheaf.get %a[0] : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
    %q = sheaf.get %a[1] : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
    %m = sheaf.apply "mul"(%p, %q) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %m : tensor<4xf32>
  }
  return %bs : !sheaf.list<tensor<4xf32>>
}

// A number beside what the block makes is one of the element's own.
// CHECK-LABEL: func.func @beside
// CHECK-COUNT-3: sheaf.map
func.func @beside(%is: !sheaf.list<tuple<f64, tensor<4xf32>>>) -> (!sheaf.list<tensor<4xf32>>, !sheaf.list<tensor<4xf32>>) {
  %as = sheaf.map %is : (!sheaf.list<tuple<f64, tensor<4xf32>>>) -> !sheaf.list<tuple<f64, tensor<4xf32>>> {
  ^bb0(%x: tuple<f64, tensor<4xf32>>):
    %j = sheaf.get %x[0] : (tuple<f64, tensor<4xf32>>) -> f64
    %r = sheaf.get %x[1] : (tuple<f64, tensor<4xf32>>) -> tensor<4xf32>
    %a = sheaf.apply "tanh"(%r) {} : (tensor<4xf32>) -> tensor<4xf32>
    %t = sheaf.tuple(%j, %a) : (f64, tensor<4xf32>) -> tuple<f64, tensor<4xf32>>
    sheaf.yield %t : tuple<f64, tensor<4xf32>>
  }
  %bs = sheaf.map %as : (!sheaf.list<tuple<f64, tensor<4xf32>>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%t: tuple<f64, tensor<4xf32>>):
    %j = sheaf.get %t[0] : (tuple<f64, tensor<4xf32>>) -> f64
    %a = sheaf.get %t[1] : (tuple<f64, tensor<4xf32>>) -> tensor<4xf32>
    %f = arith.addf %j, %j : f64
    %s = sheaf.apply "scalar"(%f) {} : (f64) -> tensor<f32>
    %b = sheaf.apply "mul"(%a, %s) {} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    sheaf.yield %b : tensor<4xf32>
  }
  %zero = arith.constant 0 : i64
  %between = sheaf.list_get %bs[%zero] : (!sheaf.list<tensor<4xf32>>) -> tensor<4xf32>
  %cs = sheaf.map %bs : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%b: tensor<4xf32>):
    %c = sheaf.apply "exp"(%b) {} : (tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %c : tensor<4xf32>
  }
  return %bs, %cs : !sheaf.list<tensor<4xf32>>, !sheaf.list<tensor<4xf32>>
}

// Nothing is taken that stands behind the first map, be it by host code.
// CHECK-LABEL: func.func @between
// CHECK-COUNT-2: sheaf.map
func.func @between(%xs: !sheaf.list<tensor<4xf32>>, %ys: !sheaf.list<tensor<4xf32>>) -> !sheaf.list<tuple<tensor<4xf32>, tensor<4xf32>>> {
  %as = sheaf.map %xs : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%x: tensor<4xf32>):
    %a = sheaf.apply "relu"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %a : tensor<4xf32>
  }
  %zero = arith.constant 0 : i64
  %between = sheaf.list_get %ys[%zero] : (!sheaf.list<tensor<4xf32>>) -> tensor<4xf32>
  %bs = sheaf.map %as : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tuple<tensor<4xf32>, tensor<4xf32>>> {
  ^bb0(%a: tensor<4xf32>):
    %b = sheaf.apply "sqrt"(%a) {} : (tensor<4xf32>) -> tensor<4xf32>
    %t = sheaf.tuple(%b, %between) : (tensor<4xf32>, tensor<4xf32>) -> tuple<tensor<4xf32>, tensor<4xf32>>
    sheaf.yield %t : tuple<tensor<4xf32>, tensor<4xf32>>
  }
  return %bs : !sheaf.list<tuple<tensor<4xf32>, tensor<4xf32>>>
}
