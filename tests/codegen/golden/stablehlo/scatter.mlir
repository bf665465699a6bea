// scatter(v, i, [1.0, 2, 3], axis=0)
module @tenon {
  func.func public @main(%arg0: tensor<8xf32>, %arg1: tensor<3xi64>) -> (tensor<8xf32>, tensor<i1>) {
    %2 = stablehlo.constant dense<"0x0000803F0000004000004040"> : tensor<3xf32>
    %3 = stablehlo.constant dense<0> : tensor<3xi64>
    %4 = stablehlo.compare LT, %arg1, %3, SIGNED : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %5 = stablehlo.constant dense<8> : tensor<3xi64>
    %6 = stablehlo.add %arg1, %5 : tensor<3xi64>
    %7 = stablehlo.select %4, %6, %arg1 : tensor<3xi1>, tensor<3xi64>
    %8 = stablehlo.compare LT, %7, %3, SIGNED : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %9 = stablehlo.compare GE, %7, %5, SIGNED : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %10 = stablehlo.or %8, %9 : tensor<3xi1>
    %11 = stablehlo.constant dense<false> : tensor<i1>
    %12 = "stablehlo.reduce"(%10, %11) ({
    ^bb0(%a: tensor<i1>, %b: tensor<i1>):
      %c = stablehlo.or %a, %b : tensor<i1>
      "stablehlo.return"(%c) : (tensor<i1>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<3xi1>, tensor<i1>) -> tensor<i1>
    %13 = stablehlo.reshape %7 : (tensor<3xi64>) -> tensor<3x1xi64>
    %14 = "stablehlo.scatter"(%arg0, %13, %2) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      "stablehlo.return"(%b) : (tensor<f32>) -> ()
    }) {indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false} : (tensor<8xf32>, tensor<3x1xi64>, tensor<3xf32>) -> tensor<8xf32>
    "func.return"(%14, %12) : (tensor<8xf32>, tensor<i1>) -> ()
  }
}
