// u + 200, u >> 1
module @tenon {
  func.func public @main(%arg0: tensor<4xui8>) -> (tensor<4xui8>, tensor<4xui8>) {
    %1 = stablehlo.constant dense<200> : tensor<ui8>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<ui8>) -> tensor<4xui8>
    %3 = stablehlo.add %arg0, %2 : tensor<4xui8>
    %4 = stablehlo.constant dense<1> : tensor<ui8>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<ui8>) -> tensor<4xui8>
    %6 = stablehlo.constant dense<8> : tensor<4xui8>
    %7 = stablehlo.compare GE, %5, %6, UNSIGNED : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
    %8 = stablehlo.compare NE, %5, %5, UNSIGNED : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
    %9 = stablehlo.or %7, %8 : tensor<4xi1>
    %10 = stablehlo.constant dense<7> : tensor<4xui8>
    %11 = stablehlo.select %9, %10, %5 : tensor<4xi1>, tensor<4xui8>
    %12 = stablehlo.shift_right_logical %arg0, %11 : tensor<4xui8>
    %13 = stablehlo.constant dense<0> : tensor<4xui8>
    %14 = stablehlo.select %9, %13, %12 : tensor<4xi1>, tensor<4xui8>
    "func.return"(%3, %14) : (tensor<4xui8>, tensor<4xui8>) -> ()
  }
}
